package main

import (
	"time"

	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/picker"
)

// settings is what the flags say, the preset's and the defaults included.
type settings struct {
	preset *preset // nil without one
	given  []setting

	endpoints   int
	concurrency int
	sharing     bool
	speeds      []float64 // of all endpoints
	service     sim.Law

	arrivals    sim.Arrivals
	utilisation float64 // 0: Arrivals.Rate is what was asked for
	streams     float64
	streamTime  sim.Law
	streamKind  picker.Kind

	incidents []incident

	clients                 int
	delay, timeout, refresh time.Duration

	policies []sim.Policy
	bound    *sim.Policy // nil without one

	duration, warmUp, step time.Duration
	seed                   uint64
	seeds, sweepSeeds      int
	sweeps                 bool
	html                   string
}

// setting is a flag with the value that it has in the end.
type setting struct {
	name, value string
	from        origin
}

// origin says who set a flag.
type origin uint8

const (
	byDefault origin = iota
	byPreset
	byUser
)

// fleet returns the scenario: without windows and time series, which are the report's.
func (s *settings) fleet() sim.Scenario {
	sc := sim.Scenario{
		Service: s.service, Arrivals: s.arrivals, Balancers: s.clients,
		Delay: s.delay, Timeout: s.timeout, Refresh: s.refresh,
		Length: s.duration, WarmUp: s.warmUp,
		Servers: make([]sim.Server, s.endpoints),
	}
	if s.preset != nil {
		sc.Name = s.preset.name
	}
	if s.streams > 0 {
		sc.Classes = []sim.Class{{Name: "held", Share: s.streams, Kind: s.streamKind, Service: s.streamTime}}
	}
	if s.streams > 0 && s.streams < 1 {
		sc.Classes = append(sc.Classes, sim.Class{Name: "short", Share: 1 - s.streams, Kind: shortKind(s.streamKind)})
	}
	for i := range sc.Servers {
		sc.Servers[i] = sim.Server{Workers: s.concurrency, Sharing: s.sharing}
		if v := s.speeds[i]; v != 1 {
			sc.Servers[i].Speed = v
		}
	}
	for _, c := range s.incidents {
		for i := c.first; i < c.first+c.count; i++ {
			sc.Servers[i].Phases = append(sc.Servers[i].Phases, c.phases()...)
		}
	}
	if s.utilisation > 0 {
		sc.Arrivals.Rate = s.utilisation * capacity(sc)
	}
	return sc
}

// shortKind is what clients say of the requests beside streams of kind k: who does not
// know of one does not know of the other.
func shortKind(k picker.Kind) picker.Kind {
	if k == picker.UnknownKind {
		return picker.UnknownKind
	}
	return picker.Unary
}

// capacity returns how many requests a second all endpoints can do without incidents, 0 if
// that means nothing.
func capacity(sc sim.Scenario) float64 {
	sc.Arrivals = sim.Arrivals{Rate: 1}
	if load := sc.Load(); load > 0 {
		return 1 / load
	}
	return 0
}
