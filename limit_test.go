package evenkeel_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// distressed returns a pool whose last second was full of timeouts, with n requests in flight, and the instant.
func distressed(tb testing.TB, c evenkeel.Config, endpoints, n int) (p *evenkeel.Pool[int], open []evenkeel.Pick[int], now time.Time) {
	tb.Helper()
	p = newPool(tb, c, endpoints)
	now = origin
	p.Sweep(now)
	for range 100 {
		k, err := p.PickAt(now, evenkeel.Request{})
		if err != nil {
			tb.Fatal(err)
		}
		k.SetDeadline(now.Add(time.Second))
		open = append(open, k)
	}
	now = now.Add(1100 * time.Millisecond)
	for i := range open {
		open[i].DoneAt(now, evenkeel.Result{Outcome: evenkeel.Timeout})
	}
	open = nil
	for range n {
		k, err := p.PickAt(now, evenkeel.Request{})
		if err != nil {
			tb.Fatal(err)
		}
		open = append(open, k)
	}
	p.Sweep(now)
	return p, open, now
}

// Timeouts make a limit, at what is in flight; who is beyond it is refused, streams are not, and the
// refusal is nobody's failure.
func TestLimitAppearsInDistressAndRefuses(t *testing.T) {
	p, open, now := distressed(t, evenkeel.Config{}, 5, 10)
	if s := p.StatsAt(now); s.Limit != 10 {
		t.Fatalf("the limit is %d, want the 10 in flight", s.Limit)
	}
	before := statsByID(p.StatsAt(now))
	_, err := p.PickAt(now, evenkeel.Request{})
	if !errors.Is(err, evenkeel.ErrOverloaded) {
		t.Fatalf("one more than the limit: %v", err)
	}
	if _, err := p.Pick(evenkeel.Request{}); !errors.Is(err, evenkeel.ErrOverloaded) {
		t.Fatalf("one more by the pool's own clock: %v", err)
	}
	if s := p.StatsAt(now); s.Refused != 2 {
		t.Errorf("%d refused, want 2", s.Refused)
	}
	for id, e := range statsByID(p.StatsAt(now)) {
		if e != before[id] {
			t.Errorf("a refusal shows on %s: was %+v, is %+v", id, before[id], e)
		}
	}
	stream, err := p.PickAt(now, evenkeel.Request{Kind: picker.Stream})
	if err != nil {
		t.Errorf("a stream: %v", err)
	}
	open[0].DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
	if open[0], err = p.PickAt(now, evenkeel.Request{}); err != nil {
		t.Errorf("in the place of one that ended: %v", err)
	}
	stream.DoneAt(now, evenkeel.Result{})
	for i := range open {
		open[i].DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
	}
	for range 130 { // calm
		now = now.Add(100 * time.Millisecond)
		p.Sweep(now)
	}
	if s := p.StatsAt(now); s.Limit != 0 {
		t.Errorf("the limit is %d after 13 s of calm", s.Limit)
	}
}

// A pick that finds nobody takes no place within the limit.
func TestPicksThatFindNobodyTakeNoPlace(t *testing.T) {
	p, open, now := distressed(t, evenkeel.Config{}, 3, 5)
	for i := range open {
		open[i].DoneAt(now, evenkeel.Result{})
	}
	for _, m := range members(3) {
		p.Drain(m.ID)
	}
	for range 20 {
		if _, err := p.PickAt(now, evenkeel.Request{}); !errors.Is(err, evenkeel.ErrNoneReady) {
			t.Fatal(err)
		}
	}
	for _, m := range members(3) {
		p.Resume(m.ID)
	}
	for i := range 5 {
		if _, err := p.PickAt(now, evenkeel.Request{}); err != nil {
			t.Fatalf("%d of 5 places are left: %v", i, err)
		}
	}
}

// No limit from the moment on that the configuration says so.
func TestDisabledLimitIsGoneAtOnce(t *testing.T) {
	p, _, now := distressed(t, evenkeel.Config{}, 3, 5)
	if _, err := p.PickAt(now, evenkeel.Request{}); err == nil {
		t.Fatal("no limit")
	}
	if err := p.SetConfigAt(now, evenkeel.Config{Limit: evenkeel.LimitConfig{Disabled: true}}); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := p.PickAt(now, evenkeel.Request{}); err != nil {
			t.Fatal(err)
		}
	}
}

// Nothing is limited on a good day.
func TestNothingIsLimitedWithoutDistress(t *testing.T) {
	p := newPool(t, evenkeel.Config{}, 10)
	now := origin
	var open []evenkeel.Pick[int]
	pick := func(r evenkeel.Request) {
		t.Helper()
		k, err := p.PickAt(now, r)
		if err != nil {
			t.Fatal(err)
		}
		k.SetDeadline(now.Add(time.Second))
		open = append(open, k)
	}
	for range 1000 {
		pick(evenkeel.Request{Kind: picker.Stream})
	}
	for range 10 {
		from := len(open)
		for range 500 {
			pick(evenkeel.Request{})
		}
		now = now.Add(200 * time.Millisecond)
		for i := range open[from:] {
			open[from+i].DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
		}
		open = open[:from]
		p.Sweep(now)
	}
	if s := p.StatsAt(now); s.Limit != 0 || s.Refused != 0 {
		t.Errorf("limit %d, %d refused", s.Limit, s.Refused)
	}
}

// Everything changes at once, with limits, ejections, probes, overflow and drains. At rest nothing is in
// flight, within the limit or beyond it. Run with -race.
func TestEverythingAtOnceUnderGuards(t *testing.T) {
	config := evenkeel.Config{Outlier: &outlier.Config{Soft: outlier.SoftConfig{ProbeBackoff: time.Millisecond, MaxProbeBackoff: time.Millisecond}}}
	p, err := evenkeel.NewPool[int](config, evenkeel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var refused atomic.Int64
	stop := make(chan struct{})
	for w := range 6 {
		wg.Go(func() { useGuarded(p, rand.New(rand.NewPCG(uint64(w), 6)), stop, &refused) })
	}
	r := rand.New(rand.NewPCG(78, 5))
	for range 1500 {
		changeGuarded(t, p, r, config)
	}
	close(stop)
	wg.Wait()
	if err := p.Update(members(10)); err != nil { // all that ever were
		t.Fatal(err)
	}
	s := p.Stats()
	for _, e := range s.Endpoints {
		if e.InFlight != 0 {
			t.Errorf("%s: in flight %d at rest", e.ID, e.InFlight)
		}
	}
	if s.Overflowed != 0 {
		t.Errorf("%d beyond the limit at rest", s.Overflowed)
	}
	// A limit that is in force has all its places free, after two sweeps at rest.
	now := time.Now()
	for range 20 {
		now = now.Add(100 * time.Millisecond)
		p.Sweep(now)
	}
	for i := range p.StatsAt(now).Limit {
		if _, err := p.PickAt(now, evenkeel.Request{}); err != nil && errors.Is(err, evenkeel.ErrOverloaded) {
			t.Fatalf("%d of %d places are free at rest", i, p.StatsAt(now).Limit)
		}
	}
	t.Logf("%d refused, %d sweeps by picks", refused.Load(), s.LateSweeps)
}

// useGuarded keeps up to five requests in flight, and ends all of them at last.
func useGuarded(p *evenkeel.Pool[int], r *rand.Rand, stop <-chan struct{}, refused *atomic.Int64) {
	var open []evenkeel.Pick[int]
	end := func(k *evenkeel.Pick[int]) {
		if r.IntN(2) == 0 {
			k.Answered(evenkeel.Result{Outcome: evenkeel.Outcome(r.IntN(7))})
		}
		k.Done(evenkeel.Result{Outcome: evenkeel.Outcome(r.IntN(7))})
	}
	for {
		select {
		case <-stop:
			for i := range open {
				end(&open[i])
			}
			return
		default:
		}
		k, err := p.Pick(evenkeel.Request{Kind: picker.Kind(r.IntN(3)), Idempotent: r.IntN(2) == 0})
		if errors.Is(err, evenkeel.ErrOverloaded) {
			refused.Add(1)
		}
		if err == nil {
			k.SetDeadline(time.Now())
			open = append(open, k)
		}
		for len(open) > 5 {
			i := r.IntN(len(open))
			end(&open[i])
			open[i] = open[len(open)-1]
			open = open[:len(open)-1]
		}
	}
}

func changeGuarded(t *testing.T, p *evenkeel.Pool[int], r *rand.Rand, config evenkeel.Config) {
	list := members(1 + r.IntN(10))
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	if err := p.Update(list); err != nil {
		t.Error(err)
	}
	p.SetStates([]evenkeel.StateChange{{ID: list[0].ID, State: evenkeel.State(r.IntN(5)), Source: evenkeel.Source(r.IntN(5))}})
	if r.IntN(2) == 0 {
		p.Drain(list[len(list)-1].ID)
	} else {
		p.Resume(list[len(list)-1].ID)
	}
	config.Policy = allPolicies[r.IntN(len(allPolicies))].policy
	switch r.IntN(8) {
	case 0:
		config.Limit.Disabled = true
	case 1:
		config.Outlier = &outlier.Config{Mode: outlier.Mode(r.IntN(4))}
	}
	if err := p.SetConfig(config); err != nil {
		t.Error(err)
	}
	p.Sweep(time.Now().Add(time.Duration(r.IntN(2000)) * time.Millisecond))
	p.Stats()
}

// Pick and Done allocate nothing with ejection, a limit, refusals, probes and overflow.
func TestGuardedPicksDoNotAllocate(t *testing.T) {
	for _, tc := range allPolicies {
		c := newTraffic(t, evenkeel.Config{Policy: tc.policy, Outlier: &outlier.Config{}}, 20)
		c.bad[2] = true
		c.send(time.Second, time.Millisecond)
		now := c.now
		if n := testing.AllocsPerRun(1000, func() {
			now = now.Add(10 * time.Microsecond)
			k, err := c.pool.PickAt(now, evenkeel.Request{})
			if err != nil {
				t.Fatal(err)
			}
			k.SetDeadline(now.Add(time.Second))
			k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success, Status: picker.HTTPStatus(200)})
		}); n != 0 {
			t.Errorf("%s: %v allocations", tc.name, n)
		}
	}
	p, open, now := distressed(t, evenkeel.Config{}, 5, 10)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := p.PickAt(now, evenkeel.Request{}); err == nil {
			t.Fatal("not refused")
		}
	}); n != 0 {
		t.Errorf("a refusal: %v allocations", n)
	}
	for i := range open {
		open[i].DoneAt(now, evenkeel.Result{})
	}
}
