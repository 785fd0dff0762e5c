package outlier_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// What results do on the request path is paid by everybody; there is no allocation in it, whatever they say.
func TestResultsDoNotAllocate(t *testing.T) {
	for _, mode := range modes {
		b := newBench(t, capped(mode, 100), "a", "b", "c")
		h := b.host("a")
		for e := range outlier.Event(13) {
			for range 3 { // in, out, and back
				if n := testing.AllocsPerRun(200, func() {
					token := h.Token()
					h.Observe(e, token, b.now)
					_, _ = h.State(b.now), b.d.ProbeDue(b.now, true)
				}); n != 0 {
					t.Errorf("%v, %v: %v allocations", mode, e, n)
				}
				b.d.Act(h, b.now)
			}
		}
		b.now += int64(1e12)
		if n := testing.AllocsPerRun(200, func() {
			b.now += int64(1e10)
			if token, ok := h.TryProbe(b.now); ok {
				h.Observe(outlier.Ignored, token, b.now)
				b.d.Act(h, b.now)
			}
		}); n != 0 {
			t.Errorf("%v: a probe has %v allocations", mode, n)
		}
	}
}

// hosts returns a Detector of n members that are all available.
func hosts(tb testing.TB, c outlier.Config, n int) []*outlier.Host {
	tb.Helper()
	d, err := outlier.NewDetector(c, nil, 0)
	if err != nil {
		tb.Fatal(err)
	}
	list := make([]outlier.Member, n)
	for i := range list {
		list[i].ID = fmt.Sprint("e", i)
	}
	if _, err := d.Update(list, 0); err != nil {
		tb.Fatal(err)
	}
	out := make([]*outlier.Host, n)
	for i := range out {
		out[i] = d.Host(i)
	}
	return out
}

// snapshot returns one over n endpoints.
func snapshot(tb testing.TB, policy picker.Policy, n int) *picker.Snapshot {
	tb.Helper()
	g := picker.NewRegistry(nil)
	g.Learn(policy.Needs())
	list := make([]picker.Endpoint, n)
	for i := range list {
		list[i].ID = fmt.Sprint("e", i)
	}
	m, err := g.Members(list, 0)
	if err != nil {
		tb.Fatal(err)
	}
	return picker.NewSnapshot(m, nil, policy, policy.Build(m, nil))
}

var benchPolicies = []struct {
	name   string
	policy picker.Policy
}{{"random", picker.Random{}}, {"p2c_in_flight", picker.P2C{Signal: picker.InFlight}}, {"adaptive", picker.Adaptive{}}}

// withAndWithout returns a pick and its end, without and with what a detector adds to them.
func withAndWithout(tb testing.TB, policy picker.Policy, n int, c outlier.Config) (without, with func(now int64)) {
	s := snapshot(tb, policy, n)
	list := hosts(tb, c, n)
	without = func(now int64) {
		p, _, err := s.Pick(picker.Request{}, now)
		if err != nil {
			tb.Fatal(err)
		}
		p.Done(now+1000, picker.Result{Outcome: picker.Success})
	}
	with = func(now int64) {
		p, i, err := s.Pick(picker.Request{}, now)
		if err != nil {
			tb.Fatal(err)
		}
		h := list[i]
		token := h.Token()
		p.Done(now+1000, picker.Result{Outcome: picker.Success})
		if h.Observe(outlier.EventOf(picker.Success), token, now+1000) {
			tb.Fatal("a success asks for action")
		}
	}
	return without, with
}

func BenchmarkPickAndDone(b *testing.B) {
	for _, p := range benchPolicies {
		for _, n := range []int{10, 1000} {
			without, with := withAndWithout(b, p.policy, n, outlier.Config{})
			for name, f := range map[string]func(int64){"off": without, "on": with} {
				b.Run(fmt.Sprintf("policy=%s/n=%d/outlier=%s", p.name, n, name), func(b *testing.B) {
					now := int64(0)
					b.ReportAllocs()
					for b.Loop() {
						now += 1000
						f(now)
					}
				})
			}
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	for _, mode := range modes {
		for _, e := range []outlier.Event{outlier.Succeeded, outlier.Failed} {
			b.Run(fmt.Sprintf("mode=%v/event=%v", mode, e), func(b *testing.B) {
				c := capped(mode, 0)
				c.Soft.ConsecutiveFailures, c.Envoy.Consecutive5xx = outlier.Off, outlier.Off
				h := hosts(b, c, 3)[0]
				b.ReportAllocs()
				now := int64(0)
				for b.Loop() {
					now++
					h.Observe(e, h.Token(), now)
				}
			})
		}
	}
}

func BenchmarkSweep(b *testing.B) {
	for _, mode := range modes {
		for _, n := range []int{10, 1000, 10_000} {
			b.Run(fmt.Sprintf("mode=%v/n=%d", mode, n), func(b *testing.B) {
				c := capped(mode, 50)
				c.A50.SuccessRate = &outlier.SuccessRate{}
				w := &bench{}
				d, err := outlier.NewDetector(c, nil, 0)
				if err != nil {
					b.Fatal(err)
				}
				list := make([]outlier.Member, n)
				for i := range list {
					list[i].ID = fmt.Sprint("e", i)
				}
				if _, err := d.Update(list, 0); err != nil {
					b.Fatal(err)
				}
				for i := range n {
					h := d.Host(i)
					for range 100 {
						h.Observe(outlier.Succeeded, h.Token(), 0)
					}
				}
				b.ReportAllocs()
				for b.Loop() {
					w.now += int64(10e9) // each one looks at rates
					d.Sweep(w.now)
				}
			})
		}
	}
}

// In an outage of a large pool the cap refuses most ejections: that must not look at everybody each time.
func BenchmarkActRefused(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			act := refused(b, n)
			b.ReportAllocs()
			for b.Loop() {
				act()
			}
		})
	}
}

// refused returns a run of failures that the cap refuses to eject for.
func refused(tb testing.TB, n int) func() {
	d, err := outlier.NewDetector(capped(outlier.Soft, 0), nil, 0)
	if err != nil {
		tb.Fatal(err)
	}
	list := make([]outlier.Member, n)
	for i := range list {
		list[i].ID = fmt.Sprint("e", i)
	}
	if _, err := d.Update(list, 0); err != nil {
		tb.Fatal(err)
	}
	h := d.Host(n / 2)
	return func() {
		for range 5 {
			if h.Observe(outlier.Failed, h.Token(), 0) && len(d.Act(h, 0)) > 0 {
				tb.Fatal("ejected")
			}
		}
	}
}

// Results of many goroutines about different endpoints, and about one.
func BenchmarkObserveParallel(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			list := hosts(b, outlier.Config{}, n)
			var next atomic.Uint64
			b.RunParallel(func(pb *testing.PB) {
				r := rand.New(rand.NewPCG(next.Add(1), 1))
				for pb.Next() {
					h := list[r.IntN(n)]
					h.Observe(outlier.Succeeded, h.Token(), 1)
				}
			})
		})
	}
}

// Results of many goroutines need no lock: whoever holds the owner's does not stop them.
func TestResultsNeedNoLock(t *testing.T) {
	list := hosts(t, outlier.Config{}, 3)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 1000 {
				h := list[i%3]
				h.Observe(outlier.Succeeded, h.Token(), int64(i))
			}
		})
	}
	wg.Wait()
}
