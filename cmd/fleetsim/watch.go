package main

import "github.com/evenkeel/evenkeel/internal/sim"

// toldIn is how many requests a run goes on for before it tells that it did: about a
// millisecond.
const toldIn = 4096

// watch counts the requests of one run, which is used by one goroutine.
type watch struct {
	n    int
	part float64 // of the run that toldIn requests are
	told float64 // of the run so far
	tell func(part float64)
}

// watchedLaw is a law that tells how often it was asked.
type watchedLaw struct {
	sim.Law
	watch *watch
}

// At implements [sim.Law].
func (l watchedLaw) At(u float64) float64 {
	l.watch.count()
	return l.Law.At(u)
}

func (w *watch) count() {
	if w.n++; w.n%toldIn != 0 || w.told+w.part > 1 {
		return
	}
	w.told += w.part
	w.tell(w.part)
}

// watched returns a scenario, for one run alone, that tells how far the run is, in parts of
// it. Requests that fail or hang ask for no work and are not told of; their runs
// go on sooner than they tell.
func (p *plan) watched(sc sim.Scenario, tell func(part float64)) sim.Scenario {
	n := p.requestsOf(sc)
	if n < 2*toldIn {
		return sc
	}
	w := &watch{part: toldIn / n, tell: tell}
	sc.Service = watchedLaw{sc.Service, w}
	classes := make([]sim.Class, len(sc.Classes))
	for i, c := range sc.Classes {
		if c.Service != nil {
			c.Service = watchedLaw{c.Service, w}
		}
		classes[i] = c
	}
	sc.Classes = classes
	return sc
}
