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

// A thousand random updates, state flips and policy changes on a pool with requests
// in flight: whoever stays keeps everything, and nothing is in flight at rest.
func TestEverythingLearntSurvivesEveryChange(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	p := newPool(t, evenkeel.Config{Outlier: &outlier.Config{}}, 20)
	c := changes{r: r, pool: p, list: members(20), next: 20}
	now := origin
	var open []evenkeel.Pick[int]
	for step := range 1000 {
		for range 10 {
			now = now.Add(300 * time.Microsecond)
			if k, err := p.PickAt(now, evenkeel.Request{}); err == nil {
				open = append(open, k)
			}
			if len(open) > 40 {
				k := r.IntN(len(open))
				open[k].DoneAt(now, evenkeel.Result{Outcome: evenkeel.Outcome(r.IntN(7))})
				open = slices.Delete(open, k, k+1)
			}
		}
		p.Sweep(now)
		before := statsByID(p.StatsAt(now))
		if err := c.change(now); err != nil {
			t.Fatal(err)
		}
		for id, after := range statsByID(p.StatsAt(now)) {
			was, stayed := before[id]
			if was, after = learnt(was), learnt(after); stayed && was != after {
				t.Fatalf("step %d: %s was %+v, is %+v", step, id, was, after)
			}
		}
	}
	for i := range open {
		open[i].DoneAt(now, evenkeel.Result{})
	}
	for _, e := range p.StatsAt(now).Endpoints {
		if e.InFlight != 0 {
			t.Errorf("%s: in flight %d at rest", e.ID, e.InFlight)
		}
	}
}

// changes changes a pool at random.
type changes struct {
	r    *rand.Rand
	pool *evenkeel.Pool[int]
	list []evenkeel.Member[int]
	next int // the name of the next newcomer
}

// change lets one come or go, changes the order or a weight, a state, or the policy.
func (c *changes) change(now time.Time) error {
	c.list = slices.Clone(c.list)
	some := c.r.IntN(len(c.list))
	switch c.r.IntN(6) {
	case 0:
		c.list = append(c.list, evenkeel.Member[int]{Endpoint: evenkeel.Endpoint{ID: fmt.Sprintf("e%d", c.next)}, Handle: c.next})
		c.next++
	case 1:
		if len(c.list) > 5 {
			c.list = slices.Delete(c.list, some, some+1)
		}
	case 2:
		c.r.Shuffle(len(c.list), func(i, j int) { c.list[i], c.list[j] = c.list[j], c.list[i] })
	case 3:
		c.list[some].Weight = evenkeel.WeightOf(1 + float64(c.r.IntN(3)))
	case 4:
		c.pool.SetState(c.list[some].ID, evenkeel.State(c.r.IntN(2)))
	case 5:
		policy := allPolicies[c.r.IntN(len(allPolicies))].policy
		if err := c.pool.SetConfigAt(now, evenkeel.Config{Policy: policy, Outlier: &outlier.Config{}}); err != nil {
			return err
		}
	}
	return c.pool.UpdateAt(now, c.list)
}

// From any policy to any other with requests in flight: the next picks are the new one's, everybody
// who may be picked is, and what began under the old one ends in the counts.
func TestEveryPolicyTakesOverFromEveryOther(t *testing.T) {
	for _, from := range allPolicies {
		for _, to := range allPolicies {
			p := newPool(t, evenkeel.Config{Policy: from.policy}, 5)
			list := members(5)
			list[1].Weight, list[2].Weight = evenkeel.WeightOf(3), evenkeel.WeightOf(0)
			if err := p.UpdateAt(origin, list); err != nil {
				t.Fatal(err)
			}
			var open []evenkeel.Pick[int]
			got := map[int]int{}
			for k := range 500 {
				if k == 100 {
					if err := p.SetConfig(evenkeel.Config{Policy: to.policy}); err != nil {
						t.Fatal(err)
					}
					clear(got)
				}
				pick, err := p.PickAt(origin, evenkeel.Request{})
				if err != nil {
					t.Fatal(err)
				}
				got[pick.Handle()]++
				open = append(open, pick)
			}
			if got[0] == 0 || got[1] == 0 || got[2] != 0 || got[3] == 0 || got[4] == 0 {
				t.Errorf("from %s to %s: picks %v, want some of all but the drained one", from.name, to.name, got)
			}
			for i := range open {
				open[i].DoneAt(origin, evenkeel.Result{Outcome: evenkeel.Success})
			}
			for _, e := range p.StatsAt(origin).Endpoints {
				if e.InFlight != 0 {
					t.Errorf("from %s to %s: %s has %d in flight at rest", from.name, to.name, e.ID, e.InFlight)
				}
			}
		}
	}
}

// learnt is e without what the owner says of it.
func learnt(e evenkeel.EndpointStats) evenkeel.EndpointStats {
	e.Weight, e.State, e.Source, e.Available, e.Ejection.Standing = 0, 0, 0, false, 0
	return e
}

// isOut reports whether the endpoint is ejected.
func isOut(e evenkeel.EndpointStats) bool {
	return e.Ejection.State == outlier.Ejected || e.Ejection.State == outlier.Probing
}

func statsByID(s evenkeel.Stats) map[string]evenkeel.EndpointStats {
	m := make(map[string]evenkeel.EndpointStats, len(s.Endpoints))
	for _, e := range s.Endpoints {
		m[e.ID] = e
	}
	return m
}

// Bug 2: statistics survive a connection that goes away and comes back, and results
// of picks from before still reach them.
func TestBug2StateFlipsKeepRecordsAndOldPicks(t *testing.T) {
	p := newPool(t, evenkeel.Config{}, 3)
	now := origin
	var old []evenkeel.Pick[int]
	for i := range 30 {
		k, err := p.PickAt(now, evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		if i < 20 {
			k.DoneAt(now.Add(10*time.Millisecond), evenkeel.Result{Outcome: evenkeel.Success})
		} else {
			old = append(old, k)
		}
	}
	before := p.StatsAt(now)
	p.SetState("e1", evenkeel.NotReady)
	p.SetState("e1", evenkeel.Ready)
	if after := p.StatsAt(now); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("before %+v\nafter %+v", before, after)
	}
	for i := range old {
		old[i].DoneAt(now.Add(time.Second), evenkeel.Result{Outcome: evenkeel.Failure})
	}
	for _, e := range p.StatsAt(now.Add(time.Second)).Endpoints {
		if e.InFlight != 0 || e.Success == 1 {
			t.Errorf("%+v: want nothing in flight, and failures", e)
		}
	}
}
