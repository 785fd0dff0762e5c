package evenkeel_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
)

// lives are three branches of one pool, each held to what must be true of it by itself, and all to one count of what
// is in flight.
type lives struct {
	trunk *evenkeel.Pool[int]
	each  [3]*life
	lists []*life // in the order of their lists, the newest last
	err   error
}

func (l *lives) start(c evenkeel.Config, random func() uint64) {
	var err error
	if l.trunk, err = evenkeel.NewPool[int](c, evenkeel.Options{Rand: random, Start: origin}); err != nil {
		l.err = err
		return
	}
	inFlight := map[int]int64{}
	for i := range l.each {
		l.each[i] = &life{config: c, now: origin, inFlight: inFlight, scale: 1}
		l.open(l.each[i], uint64(i))
	}
}

// open gives a life a new branch.
func (l *lives) open(one *life, seed uint64) {
	var err error
	if one.pool, err = l.trunk.Branch(); err != nil {
		l.err = err
		return
	}
	one.panicked = false
	one.change(seed)
	l.listed(one)
}

func (l *lives) listed(one *life) {
	l.lists = append(slices.DeleteFunc(l.lists, func(o *life) bool { return o == one }), one)
}

// do has one of them do something.
func (l *lives) do(o op) {
	one := l.each[o.arg>>3%3]
	before := fmt.Sprint(one.list)
	if o.what < 99 {
		one.do(o)
	} else {
		one.pool.Close()
		if _, err := one.pool.Pick(evenkeel.Request{}); err != evenkeel.ErrClosed {
			one.fail("closed: %v", err)
		}
		l.lists = slices.DeleteFunc(l.lists, func(o *life) bool { return o == one })
		l.agree()
		l.open(one, uint64(o.arg))
	}
	if fmt.Sprint(one.list) != before {
		l.listed(one)
	}
	for _, other := range l.each {
		other.now = one.now
		other.check()
		if other.err != nil {
			l.err = other.err
		}
	}
	l.agree()
}

// agree holds them to what they share.
func (l *lives) agree() {
	ejection := map[string]outlier.HostStats{}
	ready := map[string]bool{}
	for at, one := range l.lists {
		for i, e := range one.pool.StatsAt(one.now).Endpoints {
			if e.ID != one.list[i].ID {
				l.err = fmt.Errorf("%s is in place %d, want %s", e.ID, i, one.list[i].ID)
			}
			if was, known := ejection[e.ID]; known && was != e.Ejection {
				l.err = fmt.Errorf("of %s one says %+v, and another %+v", e.ID, was, e.Ejection)
			}
			ejection[e.ID] = e.Ejection
			ready[e.ID] = ready[e.ID] || e.State == evenkeel.Ready
			if want := l.weight(at, one.list[i]); e.Weight != want && !l.allDrained() {
				l.err = fmt.Errorf("%s has the weight %v, want %v", e.ID, e.Weight, want)
			}
		}
	}
	together := l.trunk.StatsAt(l.each[0].now).Endpoints
	if n := len(together); n != len(ejection) {
		l.err = fmt.Errorf("%d endpoints are listed together, want %d", n, len(ejection))
	}
	for _, e := range together {
		if (e.State == evenkeel.Ready) != ready[e.ID] {
			l.err = fmt.Errorf("%s is %v, while one has it ready: %v", e.ID, e.State, ready[e.ID])
		}
	}
}

// weight is what the newest list says that has the endpoint.
func (l *lives) weight(at int, m evenkeel.Member[int]) float64 {
	for _, one := range l.lists[at:] {
		for _, o := range one.list {
			if o.ID == m.ID {
				m = o
			}
		}
	}
	return m.Weight.Value()
}

func (l *lives) allDrained() bool { return l.trunk.StatsAt(l.each[0].now).AllDrained }

// Whatever several branches do, in whatever order, and whichever of them close: each is held to all that a pool is,
// what each has in flight counts for all, and they agree on who is ejected.
func TestInvariantsOfBranchesLives(t *testing.T) {
	for k, policy := range everyPolicy {
		for _, bounded := range []bool{false, true} {
			c := soft(policy)
			if bounded {
				c.Limit.PerEndpoint = 3
				c.SlowStart = &evenkeel.SlowStart{}
			}
			holds(t, 6, 500, func(ops []op) error {
				l := &lives{}
				l.start(c, rand.New(rand.NewPCG(uint64(k), 77)).Uint64)
				for _, o := range ops {
					if l.do(o); l.err != nil {
						return fmt.Errorf("%T, bounded %v: %w", policy, bounded, l.err)
					}
				}
				for _, one := range l.each {
					one.now = one.now.Add(time.Second)
					for len(one.open) > 0 {
						one.end(0)
					}
				}
				for _, one := range l.each {
					if one.rest(); one.err != nil {
						return fmt.Errorf("%T: %w", policy, one.err)
					}
				}
				return nil
			})
		}
	}
}
