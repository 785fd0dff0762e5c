package sim

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/picker"
)

// never is later than anything.
const never = math.MaxInt64

// The sources of what happens next, in the order in which they take their turns at the
// same instant: what changes first, then what ends, then what begins.
const (
	srcTimetable = iota
	srcAnswers
	srcServers
	srcTransit
	srcArrivals
	srcTimeouts
	srcSweeps
	sources
)

// request is one request, from its arrival at a balancer until both the client and the
// server are through with it. Its place in the slab is then used again.
type request struct {
	pick    evenkeel.Pick[int]
	call    orca.Call   // as its server counts it
	report  picker.Load // on its answer
	sent    int64
	u       float64 // quantile of its work
	id      uint32  // its number, modulo 2^32; tells later uses of its place
	server  int32
	user    int32 // who waits for it, in Closed
	bucket  int32 // step of the time series, -1: none
	class   uint8
	windows uint32 // bit 0: Total; bit 1+i: Windows[i]
	outcome picker.Outcome
	settled bool // the client is through with it
	gone    bool // the server is
}

// run is one run. It is used by one goroutine.
type run struct {
	scenario *Scenario
	policy   *Policy
	now      int64

	// next is when each source has something, never if it has nothing.
	next     [sources]int64
	table    []edge // what is left of the timetable
	answers  ring[timed]
	served   heap
	transit  ring[timed]
	arrivals traffic
	timeouts ring[timed]
	sweeps   sweeps

	servers  []server
	clients  clients
	requests []request
	free     []int32
	classes  []Class
	shares   []float64 // cumulated, of classes; nil if there is one

	// Independent streams, so that arrivals and work do not depend on the policy.
	arrive, work, route, picks, chance rand.PCG

	sent    int // requests so far
	open    int // of them, those that a client still waits for
	delay   int64
	timeout int64

	trafficEnds int64 // the end of arrivals, never while it is not known
	view        View
	past        *past // nil unless the bound is Seen
	stats       stats
}

// Run runs scenario s with policy p. The same scenario, policy and seed give the same
// Result, to the last bit, on every machine of an architecture; on others, estimators'
// last bits may differ. The error names everything that is wrong with s or p. Runs may
// go on concurrently.
func Run(s Scenario, p Policy, seed uint64) (*Result, error) {
	r, err := newRun(&s, &p, seed)
	if err != nil {
		return nil, err
	}
	r.loop()
	return r.stats.result(r, seed), nil
}

// newRun returns a run at instant 0.
func newRun(s *Scenario, p *Policy, seed uint64) (*run, error) {
	if err := errors.Join(s.Validate(), p.Validate(), p.fits(s)); err != nil {
		return nil, err
	}
	r := &run{scenario: s, policy: p, delay: int64(s.Delay), timeout: int64(s.Timeout), trafficEnds: never}
	r.view.run = r
	for i, g := range []*rand.PCG{&r.arrive, &r.work, &r.route, &r.picks, &r.chance} {
		g.Seed(seed, 0x9e3779b97f4a7c15*uint64(i+1))
	}
	for i := range r.next {
		r.next[i] = never
	}
	r.prepareClasses()
	r.prepareServers()
	if seen, ok := p.Bound.(Seen); ok {
		r.past = newPast(len(s.Servers), seen)
	}
	r.stats.prepare(r)
	if err := r.clients.prepare(r); err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	r.prepareTimetable()
	r.arrivals.prepare(r)
	return r, nil
}

func (r *run) prepareClasses() {
	r.classes = r.scenario.Classes
	if len(r.classes) == 0 {
		r.classes = []Class{{}}
	}
	if len(r.classes) == 1 {
		return
	}
	sum := 0.0
	for i := range r.classes {
		sum += r.classes[i].share()
		r.shares = append(r.shares, sum)
	}
}

// loop lets things happen, the next one first, until all requests are settled.
func (r *run) loop() {
	for r.open > 0 || r.next[srcArrivals] != never {
		source, at := 0, r.next[0]
		for i := 1; i < sources; i++ {
			if r.next[i] < at {
				source, at = i, r.next[i]
			}
		}
		if at == never {
			return
		}
		r.now = at
		switch source {
		case srcTimetable:
			r.turn()
		case srcAnswers:
			t := r.answers.pop()
			r.next[srcAnswers] = nextOf(&r.answers)
			r.answered(t.slot)
		case srcServers:
			r.atServer()
		case srcTransit:
			t := r.transit.pop()
			r.next[srcTransit] = nextOf(&r.transit)
			r.comeIn(t.slot)
		case srcArrivals:
			r.arrivals.arrive(r)
		case srcTimeouts:
			t := r.timeouts.pop()
			r.next[srcTimeouts] = nextOf(&r.timeouts)
			r.timeoutDue(t)
		case srcSweeps:
			r.sweeps.turn(r)
		}
	}
}

func nextOf(q *ring[timed]) int64 {
	if q.n == 0 {
		return never
	}
	return q.first().at
}

// atServer takes the next event of the heap.
func (r *run) atServer() {
	e := r.served.pop()
	switch e.kind() {
	case evServed:
		r.workDone(e.slot)
	case evFailed:
		r.leave(e.slot)
	case evFirstByte:
		if q := &r.requests[e.slot]; q.id == e.tag && !q.settled {
			q.pick.FirstByteAt(r.clients.time(r.now))
		}
	case evShared:
		r.sharedDone(e.slot, e.tag)
	case evAgain:
		r.arrivals.again(r, e.slot)
	}
	r.next[srcServers] = never
	if len(r.served.events) > 0 {
		r.next[srcServers] = r.served.events[0].at
	}
}

// later adds an event at a server.
func (r *run) later(at int64, kind int, slot int32, tag uint32) {
	r.served.push(at, kind, slot, tag)
	r.next[srcServers] = r.served.events[0].at
}

// uniform returns a number between 0 and 1, neither of them included.
func uniform(g *rand.PCG) float64 {
	return (float64(g.Uint64()>>12) + 0.5) / (1 << 52)
}

// below returns a random number from 0 to n-1.
func below(g *rand.PCG, n int) int {
	if n == 1 {
		return 0
	}
	return int(g.Uint64() >> 32 * uint64(n) >> 32)
}

// nanoseconds rounds a time of work.
func nanoseconds(ns float64) int64 {
	return int64(min(max(ns, 0), float64(maxDuration)) + 0.5)
}

// newSlot returns a free place for a request.
func (r *run) newSlot() int32 {
	if n := len(r.free); n > 0 {
		slot := r.free[n-1]
		r.free = r.free[:n-1]
		return slot
	}
	r.requests = append(r.requests, request{})
	return int32(len(r.requests) - 1)
}
