package grpcbalancer

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// sweptPolicy takes the first endpoint, and notes when it is swept.
type sweptPolicy struct {
	picker.Random
	mu sync.Mutex
	at []time.Time
}

// Build implements picker.Policy.
func (p *sweptPolicy) Build(*picker.Members, picker.Picker) picker.Picker { return p }

// Pick implements picker.Picker.
func (p *sweptPolicy) Pick(s *picker.Snapshot, _ picker.Request, _ int64) int { return s.At(0) }

// Sweep implements picker.Sweeper.
func (p *sweptPolicy) Sweep(*picker.Snapshot, int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = append(p.at, time.Now())
}

// since returns how long after start it was swept.
func (p *sweptPolicy) since(start time.Time) (after []time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range p.at {
		if !at.Before(start) {
			after = append(after, at.Sub(start))
		}
	}
	return after
}

func TestSweepsComeOnceASecondAndSoonerAfterANewList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		p := &sweptPolicy{}
		r := &rig{fakeChannel: newFakeChannel(), t: t}
		r.policy = builder{base: evenkeel.Config{Policy: p}}.Build(r.fakeChannel, balancer.BuildOptions{}).(*policy)
		defer r.policy.Close()
		check := func(what string, start time.Time, want ...time.Duration) {
			t.Helper()
			if got := p.since(start); !slices.Equal(got, want) {
				t.Errorf("%s: swept after %v, want %v", what, got, want)
			}
		}
		start := time.Now()
		_ = r.send(nil)
		time.Sleep(1500 * ms)
		check("without endpoints", start)

		start = time.Now()
		r.update(each("a", "b")...)
		time.Sleep(300 * ms)
		r.update(each("a", "b", "c")...) // too early to hasten the first one
		time.Sleep(3200 * ms)
		// The second is sooner, as the second list is that new.
		check("after the first list", start, time.Second, 1700*ms, 2700*ms)

		start = time.Now()
		r.update(each("a", "b")...)
		time.Sleep(3 * time.Second)
		check("after a later list", start, 0, 10*ms, 20*ms, 40*ms, 80*ms, 160*ms, 320*ms, 640*ms, 1280*ms, 2280*ms)

		start = time.Now()
		r.policy.Close()
		time.Sleep(time.Hour) // a timer that goes on would fire in here
		check("after Close", start)
	})
}

// Sweeps are the policy's own work, not that of picks that find it late.
func TestPicksNeedNotSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(each("a", "b")...)
		for range 30 {
			_, done := r.picked()
			time.Sleep(100 * time.Millisecond)
			done(succeeded)
		}
		if s := r.policy.pool.Stats(); s.LateSweeps != 0 || s.MedianLatency == 0 {
			t.Errorf("%d sweeps were left to picks, the median is %v", s.LateSweeps, s.MedianLatency)
		}
	})
}

// A first answer takes longer than others. If that made those that nobody has tried look
// slow, they might never be.
func TestEveryEndpointIsTriedThoughFirstAnswersAreSlow(t *testing.T) {
	for _, names := range [][]string{{"a", "b"}, {"a", "b", "c"}, {"a", "b", "c", "d", "e"}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "")
			r.up(each(names...)...)
			tried := map[string]bool{}
			for range 20 * len(names) {
				addr, done := r.picked()
				if !tried[addr] {
					time.Sleep(80 * time.Millisecond)
				}
				tried[addr] = true
				time.Sleep(20 * time.Millisecond)
				done(succeeded)
			}
			if len(tried) != len(names) {
				t.Errorf("%d of %d endpoints were tried in %d calls", len(tried), len(names), 20*len(names))
			}
		})
	}
}
