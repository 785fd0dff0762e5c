package picker_test

import (
	"math/rand/v2"
	"testing"

	"github.com/evenkeel/evenkeel/picker"
)

// Bug 48: a share below 1 is an endpoint's own. That others join, that the list comes again, or that the
// endpoint leaves and returns while it is held back ends nothing and holds nobody else back.
func TestBug48ASharePersistsWhileOthersCome(t *testing.T) {
	for _, policy := range []picker.Policy{picker.RoundRobin{}, picker.Random{}, picker.P2C{Signal: picker.InFlight}, picker.P2C{}} {
		g, s := build(t, policy, endpoints(4), rand.New(rand.NewPCG(4, 8)).Uint64)
		s.Record(3).SetShare(0.2)
		lists := [][]picker.Endpoint{endpoints(4), endpoints(8), endpoints(3), endpoints(8)}
		prev := picker.Picker(nil)
		now := int64(0)
		for step, list := range lists {
			m, err := g.Members(list, now)
			if err != nil {
				t.Fatal(err)
			}
			prev = policy.Build(m, prev)
			s = picker.NewSnapshot(m, nil, policy, prev)
			const picks = 8000
			got := make([]int, len(list))
			for range picks {
				now += ms
				p, i, err := s.Pick(picker.Request{}, now)
				if err != nil {
					t.Fatal(err)
				}
				got[i]++
				p.Done(now+ms/2, picker.Result{Outcome: picker.Success})
			}
			for i, n := range got {
				part := float64(n) * float64(len(list)) / picks
				// Newcomers take less at first, under P2C by latency, and leave the rest to all others.
				if i == 3 && (part < 0.1 || part > 0.6) || i != 3 && part < 0.7 {
					t.Errorf("%T, list %d: endpoint %d gets %.2f of an even part", policy, step, i, part)
				}
			}
		}
	}
}
