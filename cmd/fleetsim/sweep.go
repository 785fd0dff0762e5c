package main

import (
	"math"
	"slices"

	"github.com/evenkeel/evenkeel/internal/sim"
)

// sweep is the same fleet again and again with one thing changed.
type sweep struct {
	id, title, axis string
	percent         bool // of the values
	logarithmic     bool
	points          []point
	own             float64 // the value of the fleet as it is
	boundOnce       bool    // the bound does not depend on what is changed
}

// point is one fleet of a sweep.
type point struct {
	at       float64
	scenario sim.Scenario
}

// loads and numbersOfClients are where sweeps look, beside the fleet as it is.
var (
	loads            = []float64{0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95}
	multiples        = []float64{0.25, 0.5, 1, 2, 4}
	numbersOfClients = []float64{1, 3, 10, 30, 100, 300, 1000, 3000}
)

// loadSweep varies the load: as a part of the capacity, or where there is no end of that
// the rate, or in a closed loop the number of users.
func (p *plan) loadSweep() sweep {
	w := sweep{id: "load", title: "p99 against load", axis: "load (arriving work / capacity)", percent: true, own: p.scenario.Load()}
	base := p.bare()
	var values []float64
	switch {
	case w.own > 0:
		values = around(loads, w.own)
	case p.arrivals.Kind == sim.Closed:
		w.axis, w.percent, w.logarithmic, w.own = "users", false, true, float64(p.arrivals.Users)
		for _, m := range multiples {
			values = append(values, max(1, math.Round(w.own*m)))
		}
	default:
		w.axis, w.percent, w.logarithmic, w.own = "requests per second", false, true, p.scenario.Arrivals.Rate
		for _, m := range multiples {
			values = append(values, w.own*m)
		}
	}
	full := capacity(base)
	for _, v := range slices.Compact(values) {
		sc := base
		switch {
		case w.percent:
			sc.Arrivals.Rate = v * full
		case p.arrivals.Kind == sim.Closed:
			sc.Arrivals.Users = min(int(v), sim.MaxUsers)
		default:
			sc.Arrivals.Rate = v
		}
		if v == w.own || p.requestsOf(sc) <= maxRequests {
			w.points = append(w.points, point{v, sc})
		}
	}
	return w
}

// requestsOf returns about how many requests a run of sc has, which is this fleet with other
// arrivals; in a closed loop at most.
func (p *plan) requestsOf(sc sim.Scenario) float64 {
	if sc.Arrivals.Kind == sim.Closed {
		return p.requests() * float64(sc.Arrivals.Users) / float64(p.arrivals.Users)
	}
	return sc.Arrivals.Rate * p.duration.Seconds()
}

// maxClientSeconds bounds clients times the length of a run with its last answers in sweeps, less
// of it where there are many endpoints: each client does some housekeeping every second,
// whatever it sends.
const maxClientSeconds = 400_000

// clientSweep varies the number of clients that the same load comes from.
func (p *plan) clientSweep() sweep {
	w := sweep{
		id: "clients", title: "p99 against number of clients", axis: "clients that share the load",
		logarithmic: true, own: float64(p.clients), boundOnce: true,
	}
	base, tail := p.bare(), p.tail()
	for _, v := range around(numbersOfClients, w.own) {
		sc := base
		sc.Balancers = int(v)
		// A client without a request has no part in anything, and many idle ones take long.
		few := base.Arrivals.Rate > 0 && v > base.Arrivals.Rate*p.duration.Seconds()/2
		upkeep := v * (p.duration.Seconds() + tail) * max(1, float64(p.endpoints)/50)
		few = few || upkeep > maxClientSeconds
		if v != w.own && (few || sc.Balancers*p.endpoints > maxRecords) {
			continue
		}
		w.points = append(w.points, point{v, sc})
	}
	return w
}

// sweepRunsFor returns how many runs each point of the sweeps is the mean of: as the user
// says, or such that sweeps take about as long as the main runs of a usual fleet.
func (p *plan) sweepRunsFor() int {
	if p.sweepSeeds > 0 {
		return p.sweepSeeds
	}
	// Making a client's record of an endpoint takes as long as four requests.
	const budget, most, record = 10_000_000, 3, 4
	cost := 0.0
	for _, w := range p.sweeps {
		for _, at := range w.points {
			one := at.scenario.Arrivals.Rate*p.duration.Seconds() + record*float64(at.scenario.Balancers*p.endpoints)
			cost += one * float64(len(p.lines))
		}
	}
	n := most
	for n > 1 && cost*float64(n) > budget {
		n--
	}
	return n
}

// bare is the scenario without what only the main runs need.
func (p *plan) bare() sim.Scenario {
	sc := p.scenario
	sc.Windows, sc.Bucket = nil, 0
	return sc
}

// around returns values in ascending order with own among them, in place of any that are
// nearly the same.
func around(values []float64, own float64) []float64 {
	out := []float64{own}
	for _, v := range values {
		if v < own*0.98 || v > own*1.02 {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}
