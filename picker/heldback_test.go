package picker

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// sharePolicies are rules of each kind that SetShare works with.
var sharePolicies = []Policy{RoundRobin{}, Random{}, WeightedRoundRobin{}, WeightedRandom{}, SmoothWeightedRoundRobin{}, EDF{},
	WeightedLeastRequest{}, P2C{Signal: InFlight}, P2C{Signal: InFlight, Choices: 3}, P2C{}, P2C{Signal: LogMean}, Least{Signal: InFlight}, Least{}, Adaptive{}}

// An endpoint with a share of a tenth gets about a tenth of what it would get, by every rule; with all of it
// back, as much as ever.
func TestEndpointWithAShareIsHeldBack(t *testing.T) {
	for _, policy := range sharePolicies {
		for _, weights := range [][]float64{{1, 1, 1, 1, 1}, {1, 2, 2, 1, 2}} {
			t.Run(fmt.Sprintf("%T/%+v/%v", policy, policy, weights), func(t *testing.T) {
				g := NewRegistry(rand.New(rand.NewPCG(1, 9)).Uint64)
				g.Learn(policy.Needs())
				list := make([]Endpoint, len(weights))
				for i, w := range weights {
					list[i] = Endpoint{ID: fmt.Sprint(i), Weight: WeightOf(w)}
				}
				m, err := g.Members(list, 0)
				if err != nil {
					t.Fatal(err)
				}
				s := NewSnapshot(m, nil, policy, policy.Build(m, nil))
				now := int64(0)
				share := func() float64 {
					n := 0
					for range 4000 {
						now += int64(time.Millisecond)
						p, i, err := s.Pick(Request{}, now)
						if err != nil {
							t.Fatal(err)
						}
						if i == 2 {
							n++
						}
						p.Done(now+int64(time.Millisecond), Result{Outcome: Success})
					}
					return float64(n) / 4000
				}
				share()
				full := share()
				m.Record(2).SetShare(0.1)
				if part := share(); part > full/3 || part == 0 {
					t.Errorf("with a tenth its share is %.3f, without %.3f", part, full)
				}
				m.Record(2).SetShare(1)
				if again := share(); again < full*0.7 || again > full*1.4 {
					t.Errorf("with all of it back its share is %.3f, before %.3f", again, full)
				}
			})
		}
	}
}

// Where nobody else is, who is held back is picked all the same.
func TestHeldBackIsBetterThanNobody(t *testing.T) {
	for _, policy := range sharePolicies {
		g := NewRegistry(nil)
		g.Learn(policy.Needs())
		m, err := g.Members([]Endpoint{{ID: "a"}, {ID: "b"}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		m.Record(0).SetShare(0)
		s := NewSnapshot(m, []int32{0}, policy, policy.Build(m, nil))
		for range 50 {
			p, i, err := s.Pick(Request{}, 1)
			if err != nil || i != 0 {
				t.Fatalf("%T: %d, %v", policy, i, err)
			}
			p.Done(1, Result{})
		}
	}
}

// Begin counts on whom it is told, available or not, and its end leaves nothing behind.
func TestBeginCountsOnAnyMember(t *testing.T) {
	for _, policy := range append([]Policy{Hash{}}, sharePolicies...) {
		g := NewRegistry(nil)
		g.Learn(policy.Needs())
		m, err := g.Members([]Endpoint{{ID: "a"}, {ID: "b"}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := NewSnapshot(m, []int32{1}, policy, policy.Build(m, nil))
		for _, kind := range []Kind{Unary, Stream, UnknownKind} {
			p := s.Begin(0, Request{Kind: kind}, 5)
			if p.Record() != m.Record(0) || m.Record(0).InFlight() != 1 {
				t.Fatalf("%T: %d in flight", policy, m.Record(0).InFlight())
			}
			if want := int64(1); kind == Stream && g.Unary() != 0 || kind != Stream && g.Unary() != want {
				t.Errorf("%T, %v: %d unary", policy, kind, g.Unary())
			}
			p.Done(6, Result{Outcome: Success})
		}
		if r := m.Record(0); r.InFlight() != 0 || r.Streams() != 0 || g.Unary() != 0 {
			t.Errorf("%T: %d in flight at rest", policy, r.InFlight())
		}
		if totals := g.shared.totals.Load(); totals != nil && totals.sum() != 0 {
			t.Errorf("%T: a total of %d at rest", policy, totals.sum())
		}
	}
}

func TestRaisedEpochIsTheNextOne(t *testing.T) {
	g := NewRegistry(nil)
	m, err := g.Members([]Endpoint{{ID: "a"}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := m.Record(0)
	if r.RaiseEpoch(); r.Epoch() != 1 {
		t.Errorf("epoch %d, want 1", r.Epoch())
	}
}

func TestStatusIsOneProtocolsOrNone(t *testing.T) {
	for code := range 700 {
		s := HTTPStatus(code)
		got, ok := s.HTTP()
		if valid := code >= 100 && code < 600; ok != valid || valid && got != code || !valid && s != 0 {
			t.Errorf("HTTP %d: %d, %v", code, got, ok)
		}
		if _, both := s.GRPC(); both {
			t.Errorf("HTTP %d is a gRPC status", code)
		}
	}
	for code := range uint32(20) {
		want := code
		if code > 16 {
			want = 2
		}
		s := GRPCStatus(code)
		if got, ok := s.GRPC(); !ok || got != want {
			t.Errorf("gRPC %d: %d, %v", code, got, ok)
		}
		if _, both := s.HTTP(); both {
			t.Errorf("gRPC %d is an HTTP status", code)
		}
	}
}
