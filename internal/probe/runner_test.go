package probe

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/health"
)

// Three failures in a row take it out, two passes bring it back, and each pass is told of.
func TestThresholdsAndEachPassIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, steady)
		defer b.Stop()
		b.Update(endpoints("a"))
		b.expect(t, "the first", "a:ready")
		for i, step := range []struct {
			result health.Result
			want   string
		}{
			{health.Passed, "a:ready"}, {health.Failed, ""}, {health.Failed, ""}, {health.Passed, "a:ready"},
			{health.Failed, ""}, {health.Unexpected, ""}, {health.Failed, "a:failing checks"}, {health.Failed, ""},
			{health.Passed, ""}, {health.Failed, ""}, {health.Passed, ""}, {health.Passed, "a:ready"}, {health.Passed, "a:ready"},
		} {
			b.prober.set("a", step.result)
			time.Sleep(time.Second)
			if got := b.news(); got != step.want {
				t.Errorf("step %d: said %q, want %q", i, got, step.want)
			}
		}
	})
}

func TestEndpointThatLeavesIsCheckedNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, steady)
		defer b.Stop()
		b.Update(endpoints("a", "b"))
		b.expect(t, "the first", "a:ready b:ready")
		b.prober.hang("b", true)
		time.Sleep(time.Second)
		b.expect(t, "while a check of b is made", "a:ready")
		b.Update(append(endpoints("a"), Endpoint{ID: "a2", Addr: "a"}))
		b.expect(t, "when b has left", "a2:ready a2:unchecked")
		if b.prober.runs() != 0 {
			t.Error("the check of b was not broken off")
		}
		if b.Details()["b"] != "" || !slices.Equal(b.prober.gone(), []string{"b"}) {
			t.Errorf("left behind: %v, left %v", b.Details(), b.prober.gone())
		}
		n := len(b.prober.begun("b"))
		time.Sleep(10 * time.Second)
		if got := len(b.prober.begun("b")); got != n {
			t.Errorf("%d checks after it left", got-n)
		}
		b.news()
		b.prober.hang("b", false)
		b.Update(endpoints("a", "b"))
		b.expect(t, "when it is back", "b:ready b:unchecked")
		if slices.Contains(b.prober.gone(), "a") {
			t.Error("an address that another endpoint has was given up")
		}
		b.Update([]Endpoint{{ID: "a", Addr: "a'"}, {ID: "b", Addr: "b"}})
		b.news()
		time.Sleep(time.Second)
		b.expect(t, "with a new address", "a:ready b:ready")
		if n := len(b.prober.begun("a'")); n != 1 {
			t.Errorf("%d checks at the new address", n)
		}
	})
}

func TestConfigChangeKeepsStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, steady)
		defer b.Stop()
		b.prober.set("b", health.Failed)
		b.Update(endpoints("a", "b"))
		b.expect(t, "the first", "a:ready b:failing checks")
		if err := b.SetConfig(evenkeel.HealthConfig{Interval: -1, Rise: -1}, newFake()); err == nil ||
			!strings.Contains(err.Error(), "Interval") || !strings.Contains(err.Error(), "Rise") {
			t.Errorf("a wrong configuration: %v", err)
		}
		b.prober.hang("a", true)
		time.Sleep(time.Second)
		synctest.Wait() // a check is on its way
		faster := steady
		faster.Interval, faster.NoTraffic, faster.Rise = 600*time.Millisecond, 600*time.Millisecond, 1
		next := newFake()
		if err := b.SetConfig(faster, next); err != nil {
			t.Fatal(err)
		}
		b.expect(t, "when the configuration changes", "")
		if b.prober.closes() != 0 {
			t.Error("the old prober was closed while it makes a check")
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if b.prober.closes() != 1 || b.prober.runs() != 0 {
			t.Errorf("the old prober was closed %d times, %d checks run", b.prober.closes(), b.prober.runs())
		}
		time.Sleep(100 * time.Millisecond)
		b.expect(t, "the new prober's first round", "a:ready b:ready")
		b.Stop()
		synctest.Wait()
		if next.closes() != 1 || b.prober.closes() != 1 {
			t.Errorf("closed %d and %d times", next.closes(), b.prober.closes())
		}
	})
}

// A check that ends late, when its endpoint has left and come back, takes nothing from the one that is made
// now.
func TestLateEndOfABrokenCheckIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, calls, broken := make(chan struct{}), 0, 0
		var said []evenkeel.StateChange
		r, err := NewRunner(Options{Config: evenkeel.HealthConfig{Interval: time.Hour, Timeout: time.Hour}, Prober: proberFunc(func(ctx context.Context, _ string) (health.Result, string) {
			if calls++; calls == 1 {
				<-release // whatever ctx says
				return health.Failed, "late"
			}
			<-ctx.Done()
			broken++
			return health.Failed, "broken off"
		}), Out: func(list []evenkeel.StateChange) { said = append(said, list...) }})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Stop()
		r.Update(endpoints("a"))
		synctest.Wait()
		r.Update(nil)
		r.Update(endpoints("a"))
		synctest.Wait()
		close(release)
		synctest.Wait()
		if calls != 2 || broken != 0 || len(said) != 0 {
			t.Errorf("%d checks, %d broken off, said %v", calls, broken, said)
		}
		r.Update(nil)
		synctest.Wait()
		if broken != 1 || len(said) != 0 {
			t.Errorf("when it leaves again %d are broken off, said %v", broken, said)
		}
	})
}

// Who speaks of itself is not checked, until it has left and is back.
func TestToldEndpointsAreNotPolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, steady)
		defer b.Stop()
		b.prober.hang("a", true)
		b.Update(endpoints("a"))
		b.Tell("nobody", true, "")
		synctest.Wait()
		b.Tell("a", false, "NOT_SERVING")
		b.expect(t, "told of it", "a:failing checks")
		if b.Details()["a"] != "NOT_SERVING" || b.prober.runs() != 0 {
			t.Errorf("Details say %q, and %d checks run", b.Details()["a"], b.prober.runs())
		}
		b.Tell("a", false, "NOT_SERVING")
		b.Tell("a", true, "SERVING")
		b.Update(endpoints("a", "b"))
		b.expect(t, "told again", "a:ready b:ready b:unchecked")
		time.Sleep(10 * time.Second)
		if n := len(b.prober.begun("a")); n != 1 {
			t.Errorf("%d checks", n)
		}
		b.news()
		b.prober.hang("a", false)
		b.Update(endpoints("b"))
		b.Update(endpoints("a", "b"))
		b.expect(t, "when it is back", "a:ready a:unchecked")
	})
}

// Without a prober, endpoints wait until they are told of.
func TestWithoutAProberNobodyIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{states: map[string]evenkeel.State{}}
		var err error
		if b.Runner, err = NewRunner(Options{Out: b.hear}); err != nil {
			t.Fatal(err)
		}
		defer b.Stop()
		b.Update(endpoints("a", "b"))
		time.Sleep(time.Minute)
		b.Tell("a", true, "SERVING")
		b.Update(endpoints("a", "b", "c"))
		time.Sleep(time.Minute)
		b.expect(t, "one was told of", "a:ready c:unchecked")
	})
}

func TestNothingIsSaidAfterStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, steady)
		b.prober.hang("b", true)
		b.Update(endpoints("a", "b"))
		b.expect(t, "the first", "a:ready")
		b.Stop()
		b.Update(endpoints("c"))
		b.Tell("a", false, "")
		b.Used()
		if err := b.SetConfig(steady, newFake()); err != nil {
			t.Error(err)
		}
		b.Stop()
		time.Sleep(time.Minute)
		b.expect(t, "after Stop", "")
		if b.prober.runs() != 0 || b.prober.closes() != 1 || len(b.prober.begun("a")) != 1 {
			t.Errorf("%d checks run, closed %d times", b.prober.runs(), b.prober.closes())
		}
	})
}

// Out may call back, and what it causes is said after what it was told.
func TestOutMayCallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *Runner
		var said []evenkeel.StateChange
		depth := 0
		r, err := NewRunner(Options{Config: steady, Out: func(list []evenkeel.StateChange) {
			depth++
			if depth > 1 {
				t.Error("Out is called by two at a time")
			}
			for _, c := range list {
				if said = append(said, c); c.ID == "a" && c.State == evenkeel.Ready {
					r.Tell("a", false, r.Details()["a"])
					r.Update(endpoints("a", "b"))
					r.Used()
				}
			}
			depth--
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Stop()
		r.Update(endpoints("a"))
		r.Tell("a", true, "up")
		want := []evenkeel.StateChange{{ID: "a", State: evenkeel.Ready, Source: evenkeel.Checks}, {ID: "a", State: evenkeel.Failing, Source: evenkeel.Checks}}
		if !slices.Equal(said, want) || r.Details()["a"] != "up" {
			t.Errorf("said %v", said)
		}
	})
}

// All methods at once, and Stop in the middle of it: everything ends, and each prober is closed.
func TestBug41StopDuringChangesNeverHangs(t *testing.T) {
	rounds := 10000
	if testing.Short() {
		rounds = 1000
	}
	c := steady
	c.Interval, c.Timeout, c.NoTraffic = 10*time.Millisecond, 10*time.Millisecond, 10*time.Millisecond
	for range rounds {
		var mu sync.Mutex // an adapter's own, which Out takes
		told := 0
		first, second := newFlip(), newFlip()
		r, err := NewRunner(Options{Config: c, Prober: first, Out: func(list []evenkeel.StateChange) {
			mu.Lock()
			defer mu.Unlock()
			told += len(list)
		}})
		if err != nil {
			t.Fatal(err)
		}
		r.Update(endpoints("a", "b", "c"))
		var users sync.WaitGroup
		users.Go(func() { r.Update(endpoints("b", "c", "d")); r.Tell("b", false, "") })
		users.Go(func() { r.Used(); r.Details(); _ = r.SetConfig(c, second) })
		r.Stop()
		users.Wait()
		<-first.closed
		r.mu.Lock()
		last := r.prober.Prober.(flip)
		r.mu.Unlock()
		<-last.closed // by the loop, after the last check
	}
}

// flip is a prober whose results are random. It panics if it is closed twice.
type flip struct{ closed chan struct{} }

func newFlip() flip { return flip{make(chan struct{})} }

func (f flip) Probe(context.Context, string) (health.Result, string) {
	return health.Result(rand.IntN(3)), ""
}

func (f flip) Close() { close(f.closed) }

type proberFunc func(ctx context.Context, addr string) (health.Result, string)

func (f proberFunc) Probe(ctx context.Context, addr string) (health.Result, string) {
	return f(ctx, addr)
}
