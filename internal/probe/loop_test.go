package probe

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Intervals run from start to start, and who gives no answer has failed, whatever the prober returns.
func TestTimeoutIsAFailureAndDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, steady)
		defer b.Stop()
		b.Update(endpoints("a"))
		b.expect(t, "the first", "a:ready")
		b.prober.hang("a", true)
		time.Sleep(3*time.Second + 499*time.Millisecond)
		b.expect(t, "before the third timeout", "")
		time.Sleep(time.Millisecond)
		b.expect(t, "at the third timeout", "a:failing checks")
		if got := b.Details()["a"]; got != "no answer within 500ms" {
			t.Errorf("Details say %q", got)
		}
		want := []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}
		if got := b.prober.begun("a"); !slices.Equal(got, want) {
			t.Errorf("checks begin at %v", got)
		}
	})
}

// However many endpoints hang, no more than maxRunning checks run, and the others get their turn.
func TestChecksAtATimeAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, steady)
		defer b.Stop()
		list := many(300)
		for _, e := range list {
			b.prober.hang(e.Addr, true)
		}
		b.Update(list)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if b.prober.atOnce() != maxRunning || len(b.prober.calls) != 300 {
			t.Errorf("%d at a time of %d endpoints, want %d of 300", b.prober.atOnce(), len(b.prober.calls), maxRunning)
		}
		b.Stop()
		synctest.Wait()
		if b.prober.runs() != 0 {
			t.Errorf("%d run after Stop", b.prober.runs())
		}
	})
}

func TestFirstChecksOfALongListAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, steady)
		defer b.Stop()
		b.Update(many(1000))
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		at := map[time.Duration]int{}
		var order []string
		for id, calls := range b.prober.calls {
			at[calls[0]]++
			if calls[0] == 0 {
				order = append(order, id)
			}
		}
		for when, n := range at {
			if n > firstBurst || when > 400*time.Millisecond {
				t.Errorf("%d first checks at %v", n, when)
			}
		}
		if len(b.prober.calls) != 1000 {
			t.Errorf("%d were checked", len(b.prober.calls))
		}
		listed := 0
		for _, e := range many(firstBurst) {
			if slices.Contains(order, e.ID) {
				listed++
			}
		}
		if listed > firstBurst/2 {
			t.Errorf("%d of the first %d in the list are checked first", listed, firstBurst)
		}
	})
}

// Without requests checks are rare; the first request after a pause brings them back at once. That holds
// too when a check ends on the other side of the instant from which there are no requests than it began.
func TestChecksFollowTheRequests(t *testing.T) {
	for _, takes := range []time.Duration{0, time.Nanosecond, 100 * time.Millisecond, 499 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c := steady
			c.NoTraffic = time.Minute
			b := newBench(t, c)
			defer b.Stop()
			b.prober.takes = takes
			b.Update(endpoints("a"))
			time.Sleep(119 * time.Second)
			if got := b.prober.begun("a"); !slices.Equal(got, []time.Duration{0, time.Minute}) {
				t.Errorf("without requests, checks begin at %v", got)
			}
			for range 1000 { // a request each ms
				b.Used()
				time.Sleep(time.Millisecond)
			}
			for range 9 {
				b.Used()
				time.Sleep(time.Second)
			}
			got := b.prober.begun("a")[2:]
			if len(got) < 10 || got[0] != 119*time.Second || got[9] != 128*time.Second {
				t.Errorf("with requests, checks begin at %v", got)
			}
			for range 5 { // and again
				n := len(b.prober.begun("a"))
				time.Sleep(33*time.Second + 77*time.Millisecond)
				if rest := b.prober.begun("a")[n:]; len(rest) > 4 {
					t.Errorf("checks of %v: after the last request, checks begin at %v", takes, rest)
				}
				n = len(b.prober.begun("a"))
				b.Used()
				synctest.Wait()
				if len(b.prober.begun("a")) != n+1 {
					t.Fatalf("checks of %v: a request after a pause brings no check", takes)
				}
			}
		})
	}
}

func TestUsedCostsALoad(t *testing.T) {
	r, err := NewRunner(Options{Config: steady})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	// It is called for each request.
	if n := testing.AllocsPerRun(1000, r.Used); n != 0 {
		t.Errorf("Used allocates %v times", n)
	}
}
