package limit

import (
	"math"
	"time"
)

// When the limit appears, moves and goes.
const (
	// windowLeast is how long results are gathered before they are judged, windowMost how
	// long a client with little traffic waits until windowResults are there.
	windowLeast   = int64(time.Second)
	windowMost    = int64(10 * time.Second)
	windowResults = 20
	distressLeast = 3
	// stepEvery is the least time between two moves of the limit, stepMost how long it waits
	// for stepResults: fewer have no median to speak of.
	stepEvery   = int64(100 * time.Millisecond)
	stepMost    = int64(time.Second)
	stepResults = 10
	// stepsAtOnce bounds what one sweep does when it is late, or for a client with little
	// traffic: a cut to about a half.
	stepsAtOnce = 6
	// calm is how long the limit must not have mattered before it goes.
	calm = int64(10 * time.Second)
)

const (
	// smallLimit is up to where the limit grows without need, while answers come at once.
	smallLimit   = 4
	cutFactor    = 0.9
	growthFactor = 1.1
	// usedShare is how much of the limit is in flight when it is what holds requests back.
	usedShare = 0.8
	// spareFactor and spare are the room for a limit that begins while most answers come at
	// once, so that a few timeouts in a calm pool hold nobody back. So it is where nobody took
	// their time, as where the policy needs none: what is in flight at that moment may be
	// what hangs at one endpoint. From then on times are taken; if the limit is too high, a
	// second of steps shows it.
	spareFactor = 2
	spare       = 10
)

// Cutting helps against a queue, and costs requests where there is none: where the
// deadlines are tight, or others cause the load. It has failed if after futileAfter with
// at most futileShare of what was in flight at first the median is late still. Then
// it is undone, and tried again after a hold that doubles each time.
const (
	futileShare = 1. / 4
	futileAfter = int64(10 * time.Second)
	holdLeast   = int64(30 * time.Second)
	holdMost    = int64(10 * time.Minute)
)

// aimd is the limit's arithmetic, without threads (additive increase, multiplicative
// decrease: Chiu and Jain, "Analysis of the Increase and Decrease Algorithms for Congestion
// Avoidance in Computer Networks", 1989). The zero aimd with bounds is off.
type aimd struct {
	floor, ceiling float64

	// What was seen since an instant, in which the last window or step ended.
	gathered tally
	refused  int64
	since    int64
	started  bool // since is set

	// While on.
	on        bool
	limit     float64
	origin    float64 // the highest that it was since it appeared or was last restored
	mattered  int64   // when it last did
	lowSince  int64   // from when on it has been low and the median late; 0: it is not
	holdUntil int64   // no cuts before
	hold      int64   // the last hold
}

// advance takes what was seen since the last call, the requests in flight and how many were
// refused, at instant now.
func (a *aimd) advance(seen tally, inFlight, refused, now int64) {
	for v := range seen {
		a.gathered[v] += seen[v]
	}
	a.refused += refused
	if !a.started || now < a.since {
		a.since, a.started = now, true
	}
	// What lies ahead is of a clock that has since stepped back.
	a.mattered, a.lowSince = min(a.mattered, now), min(a.lowSince, max(now, 1))
	a.holdUntil = min(a.holdUntil, now+holdMost)
	elapsed, results := now-a.since, a.gathered.total()
	switch {
	case a.on && elapsed >= stepEvery && (results >= stepResults || elapsed >= stepMost):
		a.step(inFlight, min(elapsed/stepEvery, stepsAtOnce), now)
	case !a.on && (elapsed >= windowMost || elapsed >= windowLeast && results >= windowResults):
		if a.gathered.distress() {
			a.begin(inFlight, now)
		}
	default:
		return
	}
	a.gathered, a.refused, a.since = tally{}, 0, now
}

// begin makes the limit appear, at what is in flight.
func (a *aimd) begin(inFlight, now int64) {
	a.on, a.mattered, a.lowSince = true, now, 0
	a.limit = float64(inFlight)
	if a.gathered.mayBeQuick() {
		a.limit = spareFactor*a.limit + spare
	}
	a.limit = a.clamp(a.limit)
	a.origin = a.limit
	if now >= a.holdUntil+holdMost { // another day
		a.hold, a.holdUntil = 0, 0
	}
}

// step moves the limit by as many steps as have passed, or ends it.
func (a *aimd) step(inFlight, steps, now int64) {
	g := &a.gathered
	slow := g.slow() && now >= a.holdUntil
	used := a.refused > 0 || float64(inFlight) > usedShare*a.limit
	switch {
	case slow || used || g.distress():
		a.mattered = now
	case now-a.mattered >= calm:
		a.on = false
		return
	}
	switch {
	case slow:
		a.limit = a.clamp(a.limit * math.Pow(cutFactor, float64(steps)))
	case used && g.quick():
		// Nobody queues, so that requests are held back for nothing: the trouble is over, or
		// it is a host or a kind of request that hangs, which no limit mends.
		a.limit = a.clamp(max(a.limit*math.Pow(growthFactor, float64(steps)), a.limit+float64(steps)))
	case g.quick() && a.limit < smallLimit:
		// Two requests of a thin client that come together would find a limit of one, long after
		// the trouble is over.
		a.limit = a.clamp(min(a.limit+float64(steps), smallLimit))
	case used:
		// One more for each limit of good answers.
		a.limit = a.clamp(a.limit + float64(g[quick]+g[fair]+g[unseen])/a.limit)
	}
	a.origin = max(a.origin, a.limit)
	a.giveUp(slow, now)
}

// giveUp undoes cuts that did not help.
func (a *aimd) giveUp(slow bool, now int64) {
	switch {
	case !slow || a.limit > futileShare*a.origin:
		a.lowSince = 0
	case a.lowSince == 0:
		a.lowSince = max(now, 1)
	case now-a.lowSince >= futileAfter:
		a.hold = min(max(2*a.hold, holdLeast), holdMost)
		a.holdUntil, a.lowSince = now+a.hold, 0
		a.limit = a.clamp(a.origin)
		a.origin = a.limit
	}
}

func (a *aimd) clamp(x float64) float64 { return min(max(x, a.floor), a.ceiling) }
