package picker

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// pool drives a registry in turn, one endpoint after the other.
type pool struct {
	t       *testing.T
	g       *Registry
	members *Members
	now     int64
	next    int
}

func newPool(t *testing.T, n int) *pool {
	t.Helper()
	p := &pool{t: t, g: NewRegistry(func() uint64 { return 1 << 40 })}
	p.g.Learn(Adaptive{}.Needs())
	p.show(n)
	return p
}

// show makes e0 to e(n-1) the members.
func (p *pool) show(n int) {
	p.t.Helper()
	list := make([]Endpoint, n)
	for i := range list {
		list[i].ID = fmt.Sprint("e", i)
	}
	m, err := p.g.Members(list, p.now)
	if err != nil {
		p.t.Fatal(err)
	}
	p.members = m
}

// serve sends requests every gap, each to the next member, answered after x.
func (p *pool) serve(requests int, gap, x time.Duration) {
	for range requests {
		r := p.members.Record(p.next % p.members.Len())
		p.next++
		pick := Pick{rec: r, start: p.now, flags: r.begin(Unary, Adaptive{}.Needs(), p.now)}
		pick.Done(p.now+int64(x), Result{Outcome: Success})
		p.rest(gap)
	}
}

// rest lets d pass, with ten sweeps in it if a second is less than its tenth.
func (p *pool) rest(d time.Duration) {
	step := int64(max(time.Second, d/10))
	for until := p.now + int64(d); p.now < until; {
		p.now = min(until, p.now+step-p.now%step)
		p.g.Sweep(p.now)
	}
}

// The unit is an eighth of the time between two requests of one endpoint, ten latencies, and
// from a second to an hour.
func TestUnitFollowsThePaceOfRequests(t *testing.T) {
	for _, tc := range []struct {
		n        int
		gap, x   time.Duration
		requests int
		want     time.Duration
	}{
		{10, 10 * time.Millisecond, time.Millisecond, 5000, time.Second},
		{64, time.Minute, time.Millisecond, 300, 480 * time.Second},
		{8, 10 * time.Second, time.Millisecond, 300, 10 * time.Second},
		{250, 4 * time.Second, time.Millisecond, 1000, 125 * time.Second},
		{3, time.Second, 30 * time.Second, 300, 300 * time.Second},
		{100, 10 * time.Minute, time.Millisecond, 150, time.Hour},
	} {
		p := newPool(t, tc.n)
		p.serve(tc.requests, tc.gap, tc.x)
		// It is published anew when it has moved by a sixteenth.
		if got := p.g.unit; math.Abs(float64(got)/float64(tc.want)-1) > 1.0/16 {
			t.Errorf("%d endpoints, a request every %v, answered in %v: unit %v, want %v", tc.n, tc.gap, tc.x, got, tc.want)
		}
		if got := p.g.shared.learning.Load().unit; got != p.g.unit {
			t.Errorf("the unit is %v, learning goes by %v", p.g.unit, got)
		}
	}
}

// Most hang until a time limit, and the others carry everything: time constants do not follow the
// limit, which is what the median endpoint takes.
func TestUnitDoesNotFollowWhatHangs(t *testing.T) {
	p := newPool(t, 4)
	serve := func(i int, x time.Duration, outcome Outcome) {
		r := p.members.Record(i)
		pick := Pick{rec: r, start: p.now, flags: r.begin(Unary, Adaptive{}.Needs(), p.now)}
		pick.Done(p.now+int64(x), Result{Outcome: outcome})
	}
	for second := range 300 {
		for range 50 {
			serve(0, 200*time.Millisecond, Success)
		}
		if second%60 == 0 {
			for i := 1; i < 4; i++ {
				serve(i, time.Minute, Timeout)
			}
		}
		p.rest(time.Second)
	}
	if m, _ := p.members.MedianLatency(); m < 20*time.Second {
		t.Fatalf("the median is %v: the scene is not set", m)
	}
	if got, most := p.g.unit, 8*time.Second*17/16; got > most { // four times ten latencies
		t.Errorf("unit %v, want %v at most", got, most)
	}
	if got, want := p.g.patience(), 90*time.Second; got < want*95/100 || got > want*105/100 {
		t.Errorf("an endpoint is looked at after %v, want %v: 450 latencies that requests meet", got, want)
	}
}

// A member that comes and goes brings all the picks that it ever had with it, and they are not
// new; nor is one that comes back after it was forgotten.
func TestFlappingMemberDoesNotShortenTheUnit(t *testing.T) {
	for _, away := range []time.Duration{30 * time.Second, 2 * Tombstone} {
		p := newPool(t, 64)
		p.serve(64*10, time.Minute, time.Millisecond)
		before := p.g.unit
		for range 25 {
			p.show(63)
			p.serve(int(away/(30*time.Second)), 30*time.Second, time.Millisecond)
			p.show(64)
			p.serve(4, 90*time.Second, time.Millisecond) // a minute in the mean, or more
		}
		if got := p.g.unit; got < before*7/8 {
			t.Errorf("the unit was %v, and is %v after a member flapped for %v", before, got, away)
		}
	}
}

// Counts are read one after the other: a Done that comes in between hides a pick from a sweep that the one
// before has seen. That is no pick less than none.
func TestDoneAcrossASweepDoesNotShortenTheUnit(t *testing.T) {
	p := newPool(t, 64)
	p.serve(64*10, time.Minute, time.Millisecond)
	before, gap := p.g.unit, p.g.gap
	r := p.members.Record(0)
	r.sweptPicks = r.Picks() + 1 // as that leaves it
	p.rest(time.Second)
	if p.g.unit != before || p.g.gap != gap {
		t.Errorf("unit %v and gap %v, want %v and %v as before", p.g.unit, time.Duration(p.g.gap), before, time.Duration(gap))
	}
}

// A list that was empty for a while says nothing of the pace of requests.
func TestEmptyListDoesNotShortenTheUnit(t *testing.T) {
	p := newPool(t, 64)
	p.serve(64*10, time.Minute, time.Millisecond)
	before := p.g.unit
	p.show(0)
	p.rest(30 * time.Second)
	if got := p.g.shared.learning.Load().unit; got != before {
		t.Errorf("the unit was %v, and is %v while there is nobody", before, got)
	}
	p.show(64)
	p.rest(time.Second)
	if got := p.g.shared.learning.Load().unit; got != before {
		t.Errorf("the unit was %v, and is %v after there was nobody", before, got)
	}
}
