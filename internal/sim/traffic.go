package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// traffic makes requests arrive.
type traffic struct {
	spec    *Arrivals
	rand    *rand.PCG
	length  int64 // never: no limit
	limit   int   // of requests; the largest int: no limit
	waiting ring[timed]
	elapsed float64 // of the bursts' own time, in Bursts
	planned int
	over    bool
}

// retryAfter is how long a user of Closed waits who found no server.
const retryAfter = int64(time.Millisecond)

func (t *traffic) prepare(r *run) {
	s := r.scenario
	t.spec, t.rand, t.length, t.limit = &s.Arrivals, &r.arrive, never, math.MaxInt
	if s.Length > 0 {
		t.length = int64(s.Length)
	}
	if s.Requests > 0 {
		t.limit = s.Requests
	}
	if t.spec.Kind != Closed {
		t.plan(r)
		return
	}
	for u := range t.spec.Users {
		t.waiting.push(timed{0, int32(u), 0})
	}
	r.next[srcArrivals] = 0
}

// plan finds out when the next request arrives, if traffic is open.
func (t *traffic) plan(r *run) {
	at := int64(never)
	switch t.spec.Kind {
	case Poisson:
		at = r.now + t.gap(t.spec.Rate)
	case Even:
		at = int64(math.Round(float64(t.planned) * (1e9 / t.spec.Rate)))
	case Recorded:
		if t.planned < len(t.spec.Times) {
			at = int64(t.spec.Times[t.planned])
		}
	case Bursts:
		// Poisson in a time that stands still between bursts.
		on, period := float64(t.spec.On), float64(t.spec.Period)
		t.elapsed += float64(t.gap(t.spec.Rate * period / on))
		n := math.Floor(t.elapsed / on)
		at = int64(float64(n*period) + (t.elapsed - float64(n*on)))
	}
	if at >= t.length || t.planned >= t.limit {
		at = never
	}
	t.planned++
	r.next[srcArrivals] = at
	if at == never {
		t.end(r)
	}
}

// gap draws an exponential gap for a rate per second.
func (t *traffic) gap(rate float64) int64 {
	return int64(float64(-ln(uniform(t.rand))*(1e9/rate)) + 0.5)
}

// arrive lets the request that is due arrive.
func (t *traffic) arrive(r *run) {
	if t.spec.Kind != Closed {
		r.send(-1)
		t.plan(r)
		return
	}
	user := t.waiting.pop().slot
	r.next[srcArrivals] = nextOf(&t.waiting)
	t.sendAs(r, user)
}

// sendAs sends a request of a user of Closed, unless traffic is over.
func (t *traffic) sendAs(r *run, user int32) {
	if r.now >= t.length || r.sent >= t.limit {
		t.end(r)
		return
	}
	r.send(user)
}

// goOn lets a user who has been answered go on; unsent says that nobody was asked.
func (t *traffic) goOn(r *run, user int32, unsent bool) {
	if t.over {
		return
	}
	think := int64(t.spec.Think)
	if unsent && think < retryAfter {
		// Not in the order of those who wait for Think.
		r.open++ // keeps the run going
		r.later(r.now+retryAfter, evAgain, user, 0)
		return
	}
	t.waiting.push(timed{r.now + think, user, 0})
	r.next[srcArrivals] = t.waiting.first().at
}

// again is the moment when a user who found no server tries again.
func (t *traffic) again(r *run, user int32) {
	r.open--
	t.sendAs(r, user)
}

// end notes that there will be no more requests.
func (t *traffic) end(r *run) {
	if t.over {
		return
	}
	t.over = true
	t.waiting = ring[timed]{}
	r.next[srcArrivals] = never
	if t.length != never && r.sent < t.limit && t.spec.Kind != Recorded {
		r.trafficEnds = t.length
		return
	}
	r.trafficEnds = r.now
}
