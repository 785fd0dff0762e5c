package picker

import (
	"fmt"
	"testing"
	"time"
)

// taught is all that results change in a record, but for counts in flight.
type taught struct {
	view               uint64
	latency, peak      time.Duration
	known              bool
	success            float64
	avoided            time.Duration
	marks              uint32
	lastDone, rampFrom int64
}

func (r *Record) taught(now int64) taught {
	k := taught{view: r.view.Load(), success: r.Success(now), avoided: r.AvoidFor(now),
		marks: r.marks.Load(), lastDone: r.lastDone.Load(), rampFrom: r.rampFrom.Load()}
	k.latency, k.known = r.Latency(now)
	k.peak, _ = r.PeakLatency(now)
	return k
}

// waysToEnd are the orders in which a request may tell how it went.
var waysToEnd = map[string]func(p *Pick, now int64, r Result){
	"done":     func(p *Pick, now int64, r Result) { p.Done(now, r) },
	"answered": func(p *Pick, now int64, r Result) { p.Answered(now, r); p.Done(now, r) },
	"first byte": func(p *Pick, now int64, r Result) {
		p.FirstByte(now)
		p.Done(now, r)
	},
	"all three": func(p *Pick, now int64, r Result) {
		p.FirstByte(now)
		p.Answered(now, Result{Outcome: Success})
		p.Done(now, r)
	},
}

// Results of picks from before the endpoint was last ejected end the request and teach nothing, whatever
// they say and however they come; the next pick's teach again.
func TestResultsOfAnotherEpochTeachNothing(t *testing.T) {
	for way, end := range waysToEnd {
		for o := Unknown; o <= Canceled; o++ {
			for _, kind := range []Kind{Unary, Stream, UnknownKind} {
				for _, history := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%v/%v/history=%v", way, o, kind, history), func(t *testing.T) {
						testAnotherEpoch(t, kind, history, func(p *Pick, now int64) {
							end(p, now, Result{Outcome: o, RetryAfter: time.Second})
						})
					})
				}
			}
		}
	}
}

func testAnotherEpoch(t *testing.T, kind Kind, history bool, end func(p *Pick, now int64)) {
	const ms = int64(time.Millisecond)
	g, policy := NewRegistry(func() uint64 { return 1 << 40 }), P2C{}
	g.Learn(policy.Needs())
	m, err := g.Members([]Endpoint{{ID: "a"}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := NewSnapshot(m, nil, policy, policy.Build(m, nil))
	r := m.Record(0)
	if history {
		p, _, _ := s.Pick(Request{Kind: kind}, 0)
		p.FirstByte(10 * ms)
		p.Done(10*ms, Result{Outcome: Success})
		p, _, _ = s.Pick(Request{Kind: kind}, 0)
		p.Done(10*ms, Result{Outcome: Failure}) // so that a success changes something
	}
	old, _, _ := s.Pick(Request{Kind: kind}, 10*ms)
	r.RaiseEpoch()
	before := r.taught(60 * ms)
	end(&old, 60*ms)
	if after := r.taught(60 * ms); after != before {
		t.Errorf("what is known was %+v, and is %+v", before, after)
	}
	if r.InFlight() != 0 || r.Streams() != 0 || r.age.Count() != 0 {
		t.Errorf("%d in flight, %d streams, %d ageing at rest", r.InFlight(), r.Streams(), r.age.Count())
	}
	next, _, _ := s.Pick(Request{Kind: kind}, 70*ms)
	if next.FirstByte(100 * ms); r.age.Count() != 0 {
		t.Error("it ages after its first byte")
	}
	next.Done(100*ms, Result{Outcome: Success})
	if d, ok := r.PeakLatency(100 * ms); !ok || d < 29*time.Millisecond || d > 31*time.Millisecond {
		t.Errorf("a result of this epoch gives a peak of %v, want 30 ms", d)
	}
}

// An answer that began well before the ejection, and ends badly after it, has nothing to add.
func TestEndOfAnotherEpochsAnswerTeachesNothing(t *testing.T) {
	for o := Unknown; o <= Canceled; o++ {
		g := NewRegistry(nil)
		g.Learn(P2C{}.Needs())
		m, err := g.Members([]Endpoint{{ID: "a"}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := NewSnapshot(m, nil, P2C{}, P2C{}.Build(m, nil))
		r := m.Record(0)
		p, _, _ := s.Pick(Request{}, 0)
		p.Answered(10, Result{Outcome: Success})
		r.RaiseEpoch()
		before := r.taught(20)
		p.Done(20, Result{Outcome: o})
		if after := r.taught(20); after != before || r.InFlight() != 0 {
			t.Errorf("%v: what is known was %+v, and is %+v; in flight %d", o, before, after, r.InFlight())
		}
	}
}
