package main

import (
	"math"
	"time"

	"github.com/evenkeel/evenkeel/internal/sim"
)

// Bounds of what one run may cost: far beyond them it would take the machine's memory.
const (
	maxRequests = 10_000_000
	maxRecords  = 2_000_000 // clients × endpoints
	maxSteps    = 500
	maxUpdates  = 100_000_000 // endpoints in all lists that all clients get, and tables renewed
	maxUpkeep   = 200_000_000 // clients × endpoints × seconds: what clients do without requests
	maxBurst    = 10_000_000  // requests a second within a burst
)

// cost refuses what would take more than a machine has.
func (r *reader) cost(s *settings) {
	if n := s.clients * s.endpoints; n > maxRecords {
		r.refuse("clients", "clients times -endpoints to be at most %s, not %s", whole(maxRecords), whole(n))
	}
	if s.step > 0 && (s.step > s.duration || s.duration/s.step > maxSteps) {
		r.refuse("step", "0 or from %v to %v, a part of -duration", (s.duration+maxSteps-1)/maxSteps, s.duration)
	}
	if n := s.duration.Seconds() / s.refresh.Seconds() * float64(s.clients*s.endpoints); s.refresh > 0 && n > maxUpdates {
		r.refuse("refresh", "0s or at least %v, so that all lists together have at most %s endpoints",
			time.Duration(float64(s.refresh)*n/maxUpdates)+1, whole(maxUpdates))
	}
	for _, p := range s.policies {
		if n := s.duration.Seconds() / p.TableAge.Seconds() * float64(s.endpoints); p.TableAge > 0 && n > maxUpdates {
			r.refuseValue("policies", p.Name, "an age of 0s or of at least %v", time.Duration(float64(p.TableAge)*n/maxUpdates)+1)
		}
	}
	if n := float64(s.clients*s.endpoints) * s.duration.Seconds(); n > maxUpkeep {
		r.refuse("duration", "-clients times -endpoints times its seconds to be at most %s, not %.2g", whole(maxUpkeep), n)
	}
	if len(r.problems) == 0 {
		r.traffic(s)
	}
}

// traffic refuses more requests than a machine has room for. Everything else is in range.
func (r *reader) traffic(s *settings) {
	if a := s.fleet().Arrivals; a.Kind == sim.Bursts && a.Rate*a.Period.Seconds()/a.On.Seconds() > maxBurst {
		r.refuse("on", "a part of -period in which at most %s requests a second arrive, not %.2g", whole(maxBurst), a.Rate*a.Period.Seconds()/a.On.Seconds())
	}
	n, flag := s.fleet().Arrivals.Rate*s.duration.Seconds(), "duration"
	for _, name := range []string{"utilisation", "rate"} {
		if r.from(name) == byUser {
			flag = name
		}
	}
	if s.arrivals.Kind == sim.Closed {
		n = float64(s.arrivals.Users) * s.duration.Seconds() / s.fastest().Seconds()
		flag = "users"
	}
	switch {
	case math.IsInf(n, 1):
		r.refuse("think", "more than 0s where an answer may take no time at all")
	case n > maxRequests:
		r.refuse(flag, "what makes at most %s requests in a run of %v, not up to %.2g", whole(maxRequests), s.duration, n)
	}
}

// fastest returns the least time from request to request of a user, on average.
func (s *settings) fastest() time.Duration {
	work := math.Inf(1)
	sc := s.fleet()
	for i := range sc.Servers {
		mean := s.service.Mean()
		if v := sc.Servers[i].Speed; v > 0 {
			mean /= v
		}
		work = min(work, mean)
	}
	for _, c := range s.incidents {
		if c.kind == "fail" {
			work = min(work, float64(c.after))
		}
	}
	return s.arrivals.Think + 2*s.delay + time.Duration(work)
}
