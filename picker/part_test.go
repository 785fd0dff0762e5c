package picker

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// parted is a whole with parts, each with a picker of its own.
type parted struct {
	r       *rand.Rand
	policy  Policy
	g       *Registry
	m       *Members
	whole   *Snapshot
	pickers []Picker
	parts   []*Snapshot
}

func newParted(t *testing.T, policy Policy, n, parts int) *parted {
	t.Helper()
	p := &parted{r: rand.New(rand.NewPCG(3, 79)), policy: policy, pickers: make([]Picker, parts), parts: make([]*Snapshot, parts)}
	p.g = NewRegistry(p.r.Uint64)
	p.g.Learn(policy.Needs())
	var err error
	if p.m, err = p.g.Members(hashList(n, false), 0); err != nil {
		t.Fatal(err)
	}
	p.whole = NewSnapshot(p.m, nil, policy, policy.Build(p.m, nil))
	for i := range parts {
		p.pickers[i] = policy.Build(p.m, nil)
		p.reach(i, []int32{})
	}
	return p
}

// reach gives a part other endpoints.
func (p *parted) reach(part int, list []int32) {
	p.parts[part] = p.whole.Part(list, p.pickers[part])
}

// some are some of n.
func (p *parted) some(n int) (list []int32) {
	list = []int32{}
	for i := range n {
		if p.r.IntN(2) == 0 {
			list = append(list, int32(i))
		}
	}
	return list
}

// However many parts there are, and whoever they reach, the total that bounds go by is what is in flight, to the last
// one: each would else take off what the others begin where it has no connection.
func TestPartsLeaveTheTotalToTheWhole(t *testing.T) {
	const n = 8
	p := newParted(t, Hash{}, n, 3)
	var open []Pick
	for step := range 20_000 {
		switch k := p.r.IntN(20); {
		case k == 0:
			p.reach(p.r.IntN(3), p.some(n))
		case k == 1:
			p.g.Sweep(int64(step) * 1e6)
			p.whole.Sweep(int64(step) * 1e6)
			for _, part := range p.parts {
				part.Sweep(int64(step) * 1e6)
			}
		case k < 11 || len(open) == 0:
			part := p.parts[p.r.IntN(3)]
			if pick, i, err := part.Pick(keyed(p.r.Uint64()), int64(step)*1e6); err == nil {
				if open = append(open, pick); !part.Available(i) {
					t.Fatalf("step %d: %d was picked where it cannot be reached", step, i)
				}
			}
		default:
			i := p.r.IntN(len(open))
			open[i].Done(int64(step)*1e6, Result{Outcome: Success})
			open = slices.Delete(open, i, i+1)
		}
		if total := p.m.shared.totals.get().sum(); total != int64(len(open)) {
			t.Fatalf("step %d: the total is %d, want %d", step, total, len(open))
		}
	}
}

// A bound is over the mean of all endpoints, of which the total is: who reaches few would else bound nothing.
func TestPartsBoundLoadByTheMeanOfAll(t *testing.T) {
	const n = 8
	p := newParted(t, Hash{MinCapacity: 1}, n, 1)
	for range 4 * n {
		if _, _, err := p.whole.Pick(keyed(p.r.Uint64()), 1); err != nil {
			t.Fatal(err)
		}
	}
	p.reach(0, []int32{0, 1})
	for range 12 {
		if _, _, err := p.parts[0].Pick(keyed(1), 1); err != nil {
			t.Fatal(err)
		}
	}
	// The mean is 5.5 at the end, and the bound a quarter more: the key's owner is full after a few, and the other takes
	// over. Were the mean over the two, 22, the owner would take all twelve.
	if a, b := p.m.Record(0).InFlight(), p.m.Record(1).InFlight(); max(a, b)-min(a, b) > 4 {
		t.Errorf("%d and %d in flight: the load of one key was not bounded", a, b)
	}
}

// That one user is not connected says nothing of an endpoint that others use.
func TestPartsLeaveEndpointsAsTheyAre(t *testing.T) {
	for _, policy := range []Policy{Adaptive{}, Hash{}} {
		p := newParted(t, policy, 4, 2)
		p.reach(0, nil)
		for i := range 4 {
			p.m.Record(i).answered(0, p.m.shared.learning.Load())
		}
		p.reach(1, []int32{})
		p.reach(1, nil)
		for i := range 4 {
			if marks := p.m.Record(i).marks.Load(); marks&(markAway|markFresh|markApart) != 0 {
				t.Errorf("%T: a part that came and went left the marks %b", policy, marks)
			}
		}
	}
}
