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
	maxTail     = 20_000_000  // of that, while the last answers are under way
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
	if least := s.leastInterval(s.clients * s.endpoints); s.refresh > 0 && s.refresh < least {
		r.refuse("refresh", "0s or at least %v, so that all lists together have at most %s endpoints", least, whole(maxUpdates))
	}
	for _, p := range s.policies {
		if least := s.leastInterval(s.endpoints); p.TableAge > 0 && p.TableAge < least {
			r.refuseValue("policies", p.Name, "an age of 0s or of at least %v", least)
		}
	}
	if n := float64(s.clients*s.endpoints) * s.duration.Seconds(); n > maxUpkeep {
		r.refuse("duration", "-clients times -endpoints times its seconds to be at most %s, not %.2g", whole(maxUpkeep), n)
	}
	if len(r.problems) == 0 {
		r.traffic(s)
	}
}

// leastInterval returns the least time between updates of n endpoints each: such that there are
// not too many of them, nor too many updates for the simulator.
func (s *settings) leastInterval(n int) time.Duration {
	n = max(n, maxUpdates/sim.MaxUpdates)
	return max(time.Microsecond, time.Duration(s.duration.Seconds()*1e9/maxUpdates*float64(n))+1)
}

// traffic refuses more requests than a machine has room for. Everything else is in range.
func (r *reader) traffic(s *settings) {
	if a := s.fleet().Arrivals; a.Kind == sim.Bursts && a.Rate*a.Period.Seconds()/a.On.Seconds() > maxBurst {
		r.refuse("on", "a part of -period in which at most %s requests a second arrive, not %.2g", whole(maxBurst), a.Rate*a.Period.Seconds()/a.On.Seconds())
	}
	flag := "duration"
	for _, name := range []string{"users", "rate", "utilisation", "mean", "service", "speeds", "endpoints", "concurrency"} {
		if r.from(name) == byUser {
			flag = name
			break
		}
	}
	switch n := s.requests(); {
	case math.IsInf(n, 1):
		r.refuse("think", "more than 0s where an answer may take no time at all")
	case n > maxRequests:
		r.refuse(flag, "what makes at most %s requests in a run of %v, not up to %.2g", whole(maxRequests), s.duration, n)
	case s.fleet().Arrivals.Rate > sim.MaxRate:
		r.refuse(flag, "what makes at most %s requests a second, not %.2g", whole(sim.MaxRate), s.fleet().Arrivals.Rate)
	case s.upkeep() > maxTail:
		r.refuse("timeout", "a time after which nobody waits for an answer, as the last may take about %s: "+
			"-clients times -endpoints times its seconds should be at most %s, not %.2g", latency(1000*s.tail()), whole(maxTail), s.upkeep())
	}
}

// upkeep returns clients times endpoints times the seconds from the last request to its answer.
func (s *settings) upkeep() float64 { return float64(s.clients*s.endpoints) * s.tail() }

// requests returns about how many requests a run has, in a closed loop at most.
func (s *settings) requests() float64 {
	if s.arrivals.Kind != sim.Closed {
		return s.fleet().Arrivals.Rate * s.duration.Seconds()
	}
	return float64(s.arrivals.Users) * float64(s.duration) / s.cycle()
}
