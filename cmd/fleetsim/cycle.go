package main

import (
	"slices"

	"github.com/evenkeel/evenkeel/internal/sim"
)

// cycle returns about the least time from request to request of a closed loop's user, on
// average, in nanoseconds: with the fastest endpoint always, and nobody before them.
func (s *settings) cycle() float64 {
	// What takes longer than the run comes once, however long it takes.
	limit := float64(s.duration)
	if s.timeout > 0 {
		limit = min(limit, float64(s.timeout))
	}
	factor := s.leastFactor()
	work := (1-s.streams)*meanUpTo(s.service, factor, limit) + s.streams*meanUpTo(s.streamTime, factor, limit)
	for _, c := range s.incidents {
		if c.kind != "fail" {
			continue
		}
		if c.after == 0 && s.delay == 0 && s.arrivals.Think == 0 {
			return 0 // an instant may go on for ever, for as long as chance has it
		}
		work = min(work, c.share*float64(c.after)+(1-c.share)*work)
	}
	think := float64(s.arrivals.Think)
	least := min(limit, 2*float64(s.delay)+work) + think
	if s.allJoinLater() {
		const again = 1e6 // the simulator's users try again after a millisecond
		least = min(least, max(think, again))
	}
	return least
}

// leastFactor returns what the time of work is multiplied by where and when it is least.
func (s *settings) leastFactor() float64 {
	return slices.Min(s.factors(func(_ incident, from, to float64) float64 { return min(1, from, to) }))
}

// factors returns what the time of work is multiplied by at each endpoint, where an incident
// counts as of makes of the factors at its beginning and its end.
func (s *settings) factors(of func(c incident, from, to float64) float64) []float64 {
	out := make([]float64, s.endpoints)
	for i, v := range s.speeds {
		out[i] = 1 / v
	}
	for _, c := range s.incidents {
		if c.kind != "slow" && c.kind != "cold" {
			continue
		}
		to := c.to
		if to == 0 {
			to = c.by
		}
		for i := c.first; i < c.first+c.count; i++ {
			out[i] *= of(c, c.by, to)
		}
	}
	return out
}

// allJoinLater reports whether there may be a time without any endpoint.
func (s *settings) allJoinLater() bool {
	joins := make([]bool, s.endpoints)
	for _, c := range s.incidents {
		if c.kind == "cold" && c.from > 0 {
			for i := c.first; i < c.first+c.count; i++ {
				joins[i] = true
			}
		}
	}
	for _, later := range joins {
		if !later {
			return false
		}
	}
	return true
}

// meanUpTo returns about the mean of a law's times, multiplied by factor, where those above
// limit count as that.
func meanUpTo(l sim.Law, factor, limit float64) float64 {
	const n = 1000
	sum := 0.0
	for i := range n {
		sum += min(l.At((float64(i)+0.5)/n)*factor, limit)
	}
	return sum / n
}
