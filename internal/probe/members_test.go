package probe

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/health"
)

// Of the first list nobody is known to be healthy, so nobody waits; the first check decides alone.
func TestFirstListIsUsedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, steady)
		defer b.Stop()
		b.prober.takes = 100 * time.Millisecond
		b.prober.set("b", health.Failed)
		b.Update(endpoints("a", "b", "c"))
		b.expect(t, "at once", "")
		if got := b.Details()["a"]; got != "the first check has not ended" {
			t.Errorf("Details before the first check say %q", got)
		}
		time.Sleep(100 * time.Millisecond)
		b.expect(t, "after the first checks", "a:ready b:failing checks c:ready")
		if got := b.Details(); len(got) != 3 || got["b"] != "b says 1" || got["c"] != "c says 0" {
			t.Errorf("Details are %v", got)
		}
	})
}

func TestNewcomersWaitForTheirFirstCheckWhileOthersServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, steady)
		defer b.Stop()
		b.Update(endpoints("a"))
		b.expect(t, "the first", "a:ready")
		b.prober.takes = 100 * time.Millisecond
		b.prober.set("c", health.Unexpected)
		if !b.WouldWait(endpoints("a", "b")) || b.WouldWait(endpoints("b")) {
			t.Error("WouldWait goes by others than those who stay")
		}
		b.Update(endpoints("a", "b", "c"))
		b.expect(t, "when it joins", "b:unchecked c:unchecked")
		time.Sleep(99 * time.Millisecond)
		b.expect(t, "before its check has ended", "")
		time.Sleep(time.Millisecond)
		b.expect(t, "after it", "b:ready c:failing checks")
	})
}

func TestNobodyWaitsWhenNobodyServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The last healthy one leaves.
		b := newBench(t, steady)
		defer b.Stop()
		b.Update(endpoints("a"))
		b.expect(t, "the first", "a:ready")
		b.prober.hang("b", true)
		b.Update(endpoints("a", "b"))
		b.expect(t, "when it joins", "b:unchecked")
		b.Update(endpoints("b", "c"))
		b.expect(t, "when the other leaves", "b:ready c:ready")

		// The last healthy one fails.
		b.prober.hang("b", false)
		b.Update(endpoints("c"))
		b.news()
		b.prober.hang("d", true)
		b.prober.set("c", health.Unexpected)
		once := steady
		once.UnexpectedAtOnce = true
		if err := b.SetConfig(once, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(900 * time.Millisecond)
		b.Update(endpoints("c", "d"))
		b.expect(t, "when it joins", "d:unchecked")
		time.Sleep(100 * time.Millisecond)
		b.expect(t, "when the other fails", "c:failing checks d:ready")

		// With UseUnchecked nobody waits at all.
		use := steady
		use.UseUnchecked = true
		b.prober.set("c", health.Passed)
		time.Sleep(5 * time.Second)
		b.prober.hang("e", true)
		b.Update(endpoints("c", "e"))
		if got := b.news(); !strings.HasSuffix(got, "e:unchecked") {
			t.Errorf("e joins: %q", got)
		}
		if err := b.SetConfig(use, nil); err != nil {
			t.Fatal(err)
		}
		b.expect(t, "with UseUnchecked", "e:ready")
		b.Update(endpoints("c", "e", "f"))
		b.expect(t, "f joins", "f:ready") // by its check
	})
}

// Whatever the order of events, what was said last of each endpoint is what its checks have come to, and
// nobody waits while nobody is known to be healthy.
func TestWhatWasSaidIsWhatIsSo(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, steady)
			defer b.Stop()
			random := rand.New(rand.NewPCG(seed, 3))
			all := many(8)
			var list []Endpoint
			for range 150 {
				e := all[random.IntN(len(all))]
				switch random.IntN(6) {
				case 0, 1:
					list = nil
					for _, e := range all {
						if random.IntN(2) == 0 {
							list = append(list, e)
						}
					}
					b.Update(list)
				case 2:
					b.prober.set(e.Addr, health.Result(random.IntN(3)))
				case 3:
					b.prober.hang(e.Addr, random.IntN(3) == 0)
				case 4:
					if random.IntN(2) == 0 {
						b.Tell(e.ID, random.IntN(2) == 0, "told")
					}
				case 5:
					time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
				}
				synctest.Wait()
				b.compare(t, list)
			}
		})
	}
}

// compare checks what was said of each of the list against what is known of it. What a pool forgets
// of endpoints that leave is forgotten here.
func (b *bench) compare(t *testing.T, list []Endpoint) {
	t.Helper()
	b.Runner.mu.Lock()
	defer b.Runner.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	healthy, waiting := 0, 0
	for _, e := range list {
		s, _, ok := b.checks.State(e.ID)
		if !ok {
			t.Fatalf("%s is not checked", e.ID)
		}
		said := b.states[e.ID]
		switch s.Status() {
		case health.Healthy:
			healthy++
			if said != evenkeel.Ready {
				t.Fatalf("%s is healthy, and was said to be %v", e.ID, said)
			}
		case health.Unhealthy:
			if said != evenkeel.Failing {
				t.Fatalf("%s is unhealthy, and was said to be %v", e.ID, said)
			}
		case health.Unchecked:
			if said == evenkeel.Unchecked {
				waiting++
			} else if said != evenkeel.Ready {
				t.Fatalf("%s was never checked, and was said to be %v", e.ID, said)
			}
		}
	}
	if healthy == 0 && waiting > 0 {
		t.Fatalf("%d wait and nobody serves", waiting)
	}
	for id := range b.states {
		if !slices.ContainsFunc(list, func(e Endpoint) bool { return e.ID == id }) {
			delete(b.states, id)
		}
	}
}
