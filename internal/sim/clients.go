package sim

import (
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// clients are the balancers: a pool each, driven as an adapter drives it.
type clients struct {
	pools   []*evenkeel.Pool[int] // nil with a bound
	start   time.Time             // instant 0
	members []evenkeel.Member[int]
	handles map[string]int // of all servers, by ID
	// allDrained says that no member has a weight: all are then taken as equal.
	allDrained bool

	table   *picker.LoadTable
	renewed int64
	loads   map[string]float64
}

// epoch is instant 0 of every run: any fixed time does, as only differences count.
var epoch = time.Unix(0, 0)

func serverID(i int) string { return fmt.Sprintf("s%d", i) }

// time converts an instant.
func (c *clients) time(now int64) time.Time { return c.start.Add(time.Duration(now)) }

func (c *clients) prepare(r *run) error {
	c.start = epoch
	c.list(r)
	if r.policy.Bound != nil {
		return nil
	}
	c.handles = make(map[string]int, len(r.servers))
	for i := range r.servers {
		c.handles[r.servers[i].id] = i
	}
	config := r.policy.Config
	if r.policy.Table != nil {
		c.table, c.loads = &picker.LoadTable{}, make(map[string]float64, len(r.servers))
		c.setTable(r)
		config.Policy = r.policy.Table(c.table)
	}
	prime := r.policy.Prime
	options := evenkeel.Options{Rand: r.picks.Uint64, Start: c.start.Add(-prime)}
	c.pools = make([]*evenkeel.Pool[int], r.scenario.balancers())
	for b := range c.pools {
		pool, err := evenkeel.NewPool[int](config, options)
		if err != nil {
			return err
		}
		if err := pool.UpdateAt(options.Start, c.members); err != nil {
			return err
		}
		if prime > 0 {
			c.prime(pool, options.Start)
		}
		c.pools[b] = pool
	}
	r.sweeps.prepare(r)
	return nil
}

// list works out who the members are.
func (c *clients) list(r *run) {
	c.members, c.allDrained = c.members[:0], true
	for i := range r.servers {
		v := &r.servers[i]
		if !v.member {
			continue
		}
		weight := v.weight
		if v.drained {
			weight = evenkeel.WeightOf(0)
		}
		c.allDrained = c.allDrained && weight.Value() == 0
		c.members = append(c.members, evenkeel.Member[int]{
			Endpoint: evenkeel.Endpoint{ID: v.id, Weight: weight}, Handle: i,
		})
	}
}

// update gives all clients the present list.
func (c *clients) update(r *run) {
	c.list(r)
	for _, p := range c.pools {
		// The list is valid by the scenario's validation, and pools are not closed.
		_ = p.UpdateAt(c.time(r.now), c.members)
	}
}

// prime lets a pool see one answer of each member that began at from and ends at
// instant 0, by having only that one ready.
func (c *clients) prime(pool *evenkeel.Pool[int], from time.Time) {
	changes := make([]evenkeel.StateChange, len(c.members))
	for i, m := range c.members {
		changes[i] = evenkeel.StateChange{ID: m.ID, State: evenkeel.NotReady}
	}
	pool.SetStates(changes)
	for _, m := range c.members {
		pool.SetState(m.ID, evenkeel.Ready)
		if pick, err := pool.PickAt(from, evenkeel.Request{}); err == nil {
			pick.DoneAt(c.start, evenkeel.Result{Outcome: evenkeel.Success})
		}
		pool.SetState(m.ID, evenkeel.NotReady)
	}
	for i := range changes {
		changes[i].State = evenkeel.Ready
	}
	pool.SetStates(changes)
}

// renew is called before each pick, and renews the shared table if that is how it gets
// renewed.
func (c *clients) renew(r *run) {
	age := int64(r.policy.TableAge)
	if age > 0 && !r.policy.TableOnDemand || r.now-c.renewed < age {
		return
	}
	c.renewed = r.now
	c.setTable(r)
}

func (c *clients) setTable(r *run) {
	for i := range r.servers {
		c.loads[r.servers[i].id] = float64(r.servers[i].load)
	}
	_ = c.table.Set(c.loads) // counts are within its bounds
}

// lateSweeps sums up what pools counted.
func (c *clients) lateSweeps(r *run) (n uint64) {
	for _, p := range c.pools {
		n += p.StatsAt(c.time(r.now)).LateSweeps
	}
	return n
}

// ejections sums up how often each server was ejected.
func (c *clients) ejections(r *run) []int {
	if r.policy.Bound != nil {
		return nil
	}
	counts := make([]int, len(r.servers))
	for _, p := range c.pools {
		s := p.StatsAt(c.time(r.now))
		for i := range s.Endpoints {
			counts[c.handles[s.Endpoints[i].ID]] += int(s.Endpoints[i].Ejection.Epoch)
		}
	}
	return counts
}

// ejected counts the clients that have each server ejected now. It asks those alone that may
// have, as it takes longer than the requests of a step where clients are many.
func (c *clients) ejected(r *run) []int {
	rules := r.policy.Config.Outlier
	if r.policy.Bound != nil || rules == nil && r.policy.Config.Policy == nil || rules != nil && rules.EjectsNobody() {
		return nil
	}
	counts := make([]int, len(r.servers))
	for _, p := range c.pools {
		s := p.StatsAt(c.time(r.now))
		for i := range s.Endpoints {
			if state := s.Endpoints[i].Ejection.State; state == outlier.Ejected || state == outlier.Probing {
				counts[c.handles[s.Endpoints[i].ID]]++
			}
		}
	}
	return counts
}

// sweeps lets each pool sweep when it asks to, the first times one after the other.
type sweeps struct {
	due      []int64 // a binary heap of instants
	balancer []int32 // whose they are
	count    int
}

func (w *sweeps) prepare(r *run) {
	n := len(r.clients.pools)
	w.due, w.balancer = make([]int64, n), make([]int32, n)
	for i := range n {
		w.due[i] = int64(10*time.Millisecond) * int64(i+1) / int64(n)
		w.balancer[i] = int32(i)
	}
	r.next[srcSweeps] = w.due[0]
}

func (w *sweeps) turn(r *run) {
	b := w.balancer[0]
	w.count++
	next := r.clients.pools[b].Sweep(r.clients.time(r.now))
	w.due[0] = r.now + int64(next.Sub(r.clients.time(r.now)))
	w.sift()
	r.next[srcSweeps] = w.due[0]
}

// sift moves the first down to where it belongs.
func (w *sweeps) sift() {
	for i := 0; ; {
		c := 2*i + 1
		if c+1 < len(w.due) && w.due[c+1] < w.due[c] {
			c++
		}
		if c >= len(w.due) || w.due[i] <= w.due[c] {
			break
		}
		w.due[i], w.due[c] = w.due[c], w.due[i]
		w.balancer[i], w.balancer[c] = w.balancer[c], w.balancer[i]
		i = c
	}
}
