package evenkeel_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// soft is Soft for any policy.
func soft(policy evenkeel.Policy) evenkeel.Config {
	return evenkeel.Config{Policy: policy, Outlier: &outlier.Config{}}
}

// Whatever happens: who is picked is in the list, may be picked and has a weight; what is in flight is what
// was picked less what has ended, within what an endpoint may have, and nothing at rest; panic is when the share says so.
func TestInvariantsOfAPoolsLife(t *testing.T) {
	for k, policy := range everyPolicy {
		for kind := range 3 {
			bounded, branch := kind == 1, kind == 2
			c := soft(policy)
			if bounded {
				c.Limit.PerEndpoint = 3
				c.SlowStart = &evenkeel.SlowStart{}
			}
			holds(t, 6, 400, func(ops []op) error {
				l := &life{branch: branch}
				l.start(c, rand.New(rand.NewPCG(uint64(k), 73)).Uint64)
				for _, o := range ops {
					if l.do(o); l.err != nil {
						return fmt.Errorf("%T, bounded %v, a branch %v: %w", policy, bounded, branch, l.err)
					}
				}
				l.rest()
				return l.err
			})
		}
	}
}

// The walks are worth something: they eject, probe, ramp, panic, drain and refuse.
func TestWalksSeeWhatThereIsToSee(t *testing.T) {
	saw := map[string]int{}
	for seed := range uint64(8) {
		l := &life{}
		l.start(soft(picker.P2C{}), rand.New(rand.NewPCG(seed, 74)).Uint64)
		for _, o := range randomOps(seed, 400) {
			l.do(o)
			s := l.pool.StatsAt(l.now)
			for _, e := range s.Endpoints {
				saw[e.Ejection.State.String()]++
				saw[e.State.String()]++
			}
			if s.Panicking {
				saw["panic"]++
			}
			if s.Limit > 0 {
				saw["limit"]++
			}
			if s.Overflowed > 0 {
				saw["overflow"]++
			}
		}
	}
	for _, what := range []string{"ejected", "probing", "ramping", "panic", "limit", "overflow", "draining", "failing checks", "not ready"} {
		if saw[what] < 20 {
			t.Errorf("%s was seen %d times, want 20 at least: %v", what, saw[what], saw)
		}
	}
}

// With results that blame nobody, nobody is out, by whatever rules.
func TestSuccessesAloneEjectNobodyFromAPool(t *testing.T) {
	for _, mode := range []outlier.Mode{outlier.Soft, outlier.Envoy} {
		for _, policy := range everyPolicy {
			holds(t, 4, 300, func(ops []op) error {
				l := &life{good: true}
				c := soft(policy)
				c.Outlier.Mode = mode
				c.Outlier.MaxEjectionPercent = outlier.PercentOf(100)
				c.Outlier.Panic = outlier.Panic{Threshold: outlier.PercentOf(50), Leave: outlier.PercentOf(60)}
				l.start(c, rand.New(rand.NewPCG(1, 75)).Uint64)
				for _, o := range ops {
					if l.do(o); l.err != nil && mode == outlier.Soft {
						return l.err
					}
					if n := l.pool.StatsAt(l.now).Ejected; n > 0 {
						return fmt.Errorf("%v, %T: %d are ejected", mode, policy, n)
					}
				}
				return nil
			})
		}
	}
}

// The same list and configuration again, after each step, in another order, change nothing that can be seen.
func TestTheSameListAgainChangesNothing(t *testing.T) {
	for _, policy := range everyPolicy {
		holds(t, 4, 200, func(ops []op) error {
			l := &life{again: true, branch: len(ops)%2 == 0}
			l.start(soft(policy), rand.New(rand.NewPCG(2, 75)).Uint64)
			for _, o := range ops {
				if l.do(o); l.err != nil {
					return fmt.Errorf("%T: %w", policy, l.err)
				}
			}
			return nil
		})
	}
}

// byKey picks by the request's key and by IDs, and by nothing that depends on places in the list.
type byKey struct{}

func (byKey) Validate() error                                        { return nil }
func (byKey) Needs() picker.Need                                     { return 0 }
func (byKey) Build(m *picker.Members, _ picker.Picker) picker.Picker { return byKeyPicker{m} }

type byKeyPicker struct{ members *picker.Members }

// Pick takes the one whose ID is the first from the key on, around the end, and one to avoid last.
func (p byKeyPicker) Pick(s *picker.Snapshot, r picker.Request, _ int64) int {
	best, least := -1, 1<<20
	for k := range s.Len() {
		rec := p.members.Record(s.At(k))
		var n int
		_, _ = fmt.Sscanf(rec.ID(), "e%d", &n)
		from := (n - int(r.Key%16) + 16) % 16
		if slices.Contains(r.Avoid, rec) {
			from += 16
		}
		if from < least {
			best, least = s.At(k), from
		}
	}
	return best
}

// steadyDraw is a source whose numbers are all the same, so that no draw depends on an order: it lets every
// request probe for which that is due, and adds no jitter.
func steadyDraw() uint64 { return 1<<63 + 1 }

// The order of a list decides nothing: two pools with the same list in different orders do the same.
func TestOrderOfAPoolsListIsIrrelevant(t *testing.T) {
	holds(t, 60, 400, func(ops []op) error {
		plain, mixed := &life{}, &life{shuffled: rand.New(rand.NewPCG(3, 75))}
		c := soft(byKey{})
		c.Limit.Disabled = true                              // what overflows goes to anybody
		c.Outlier.MaxEjectionPercent = outlier.PercentOf(34) // so that it matters who comes first
		c.Outlier.Soft = outlier.SoftConfig{ConsecutiveFailures: 8, RequestVolume: 4, MinHosts: 2}
		for _, l := range []*life{plain, mixed} {
			l.start(c, steadyDraw)
		}
		return alike(plain, mixed, ops, func(e evenkeel.EndpointStats) evenkeel.EndpointStats { return e })
	})
}

// Weights are relative: all of them times the same number make no other pick. A ring's are not, by its
// documentation: a weight of 1 has so many points. And rotations that go on over an update round what
// endpoints are owed to their own units: they get no updates here.
func TestScalingAllWeightsChangesNothing(t *testing.T) {
	for _, policy := range everyPolicy {
		if h, ok := policy.(picker.Hash); ok && h.Table == picker.Ring {
			continue
		}
		t.Run(fmt.Sprintf("%T%+v", policy, policy), func(t *testing.T) {
			for _, scale := range []float64{1.0 / 16, 4, 1024} {
				holds(t, 4, 300, func(ops []op) error {
					plain, scaled := &life{}, &life{scale: scale}
					if rounds(policy) {
						ops = slices.DeleteFunc(slices.Clone(ops), func(o op) bool { return o.what >= 82 && o.what < 98 })
					}
					for _, l := range []*life{plain, scaled} {
						l.start(soft(policy), rand.New(rand.NewPCG(4, 75)).Uint64)
					}
					err := alike(plain, scaled, ops, func(e evenkeel.EndpointStats) evenkeel.EndpointStats { e.Weight = 0; return e })
					if err != nil {
						err = fmt.Errorf("%T%+v, weights times %v: %w", policy, policy, scale, err)
					}
					return err
				})
			}
		})
	}
}

func rounds(policy evenkeel.Policy) bool {
	switch policy.(type) {
	case picker.SmoothWeightedRoundRobin, picker.WeightedRoundRobin:
		return true
	}
	return false
}

// alike lives both lives, and compares who is picked and what is known of each endpoint after each step.
func alike(a, b *life, ops []op, view func(evenkeel.EndpointStats) evenkeel.EndpointStats) error {
	for _, o := range ops {
		a.do(o)
		b.do(o)
		switch {
		case a.err != nil:
			return a.err
		case b.err != nil:
			return b.err
		case a.trace.String() != b.trace.String():
			return fmt.Errorf("after %v the one picked\n%s the other\n%s", o, lastLine(&a.trace), lastLine(&b.trace))
		}
		other := statsByID(b.pool.StatsAt(b.now))
		for id, e := range statsByID(a.pool.StatsAt(a.now)) {
			if view(e) != view(other[id]) {
				return fmt.Errorf("after %v %s is\n%+v in the one, and in the other\n%+v", o, id, e, other[id])
			}
		}
	}
	return nil
}

func lastLine(b *strings.Builder) string {
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	return lines[len(lines)-1]
}

// Whoever is ejected is tried again: by Soft's rules within the longest wait and a second while there are
// requests, by the others' within the longest time, its jitter and an interval.
func TestEverybodyEjectedFromAPoolIsTriedAgain(t *testing.T) {
	const most, jitter, interval = 20 * time.Second, 2 * time.Second, 5 * time.Second
	within := map[outlier.Mode]time.Duration{outlier.Soft: 9600*time.Millisecond + time.Second,
		outlier.Envoy: most + jitter + interval + time.Second, outlier.A50: most + interval + time.Second}
	for mode, within := range within {
		c := soft(picker.RoundRobin{})
		c.Limit.Disabled = true
		*c.Outlier = outlier.Config{Mode: mode, Interval: interval, BaseEjectionTime: 4 * time.Second, MaxEjectionTime: most,
			MaxEjectionPercent: outlier.PercentOf(100), Panic: outlier.Panic{Threshold: outlier.PercentOf(50), Leave: outlier.PercentOf(60)}}
		if mode == outlier.Envoy {
			c.Outlier.MaxEjectionJitter = jitter
		}
		c.Outlier.A50.FailurePercentage = &outlier.FailurePercentage{MinHosts: 1, RequestVolume: 5}
		for seed := range uint64(4) {
			longest := longestWithout(t, c, seed)
			if longest > within {
				t.Errorf("%v, seed %d: somebody was ejected for %v without a request, want %v", mode, seed, longest, within)
			}
			if longest == 0 {
				t.Errorf("%v, seed %d: nobody was ever ejected", mode, seed)
			}
		}
	}
}

// longestWithout plays three minutes in which some fail for some time, and returns for how long somebody
// was out without being tried.
func longestWithout(t *testing.T, c evenkeel.Config, seed uint64) (longest time.Duration) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 76))
	w := newTraffic(t, c, 6)
	since := map[int]time.Time{}
	for range 900 {
		if r.IntN(20) == 0 {
			w.bad[r.IntN(6)] = r.IntN(3) > 0
		}
		clear(w.sent)
		w.send(200*time.Millisecond, 10*time.Millisecond)
		for i := range 6 {
			from, out := since[i]
			is := isOut(w.stats(fmt.Sprint("e", i)))
			switch {
			case out && (!is || w.sent[i] > 0):
				longest = max(longest, w.now.Sub(from))
				delete(since, i)
			case out:
				longest = max(longest, w.now.Sub(from))
			}
			if is && (!out || w.sent[i] > 0) {
				since[i] = w.now
			}
		}
	}
	return longest
}
