package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/picker"
)

// Bounds of -utilisation.
const leastLoad, mostLoad = 0.001, 10

const defaultDuration = time.Minute

// load reads how requests come.
func (r *reader) load(s *settings) {
	kinds := map[string]sim.ArrivalKind{"poisson": sim.Poisson, "even": sim.Even, "bursts": sim.Bursts, "closed": sim.Closed}
	s.arrivals.Kind = kinds[r.oneOf("arrivals", "poisson", "even", "bursts", "closed")]
	s.arrivals.On, s.arrivals.Period = r.duration("on", time.Microsecond, forever), r.duration("period", time.Microsecond, forever)
	s.arrivals.Users, s.arrivals.Think = r.integer("users", 1, 100_000), r.duration("think", 0, forever)
	if s.arrivals.Kind == sim.Bursts && s.arrivals.On > s.arrivals.Period {
		r.refuse("on", "at most -period, %v", s.arrivals.Period)
	}
	if s.arrivals.Kind != sim.Bursts {
		s.arrivals.On, s.arrivals.Period = 0, 0
		r.pointless("on", "-arrivals bursts")
		r.pointless("period", "-arrivals bursts")
	}
	if s.arrivals.Kind != sim.Closed {
		s.arrivals.Users, s.arrivals.Think = 0, 0
		r.pointless("users", "-arrivals closed")
		r.pointless("think", "-arrivals closed")
	}
	r.streams(s)
	r.rate(s)
}

// pointless refuses a flag that the user set although it means nothing without another.
func (r *reader) pointless(name, without string) {
	if r.from(name) == byUser {
		r.refuse(name, "it only with %s", without)
	}
}

func (r *reader) rate(s *settings) {
	_, rate := r.values["rate"]
	rate = rate && r.text("rate") != ""
	_, utilisation := r.values["utilisation"]
	switch {
	case s.arrivals.Kind == sim.Closed:
		for _, name := range []string{"rate", "utilisation"} {
			if r.from(name) == byUser {
				r.refuse(name, "-users instead with -arrivals closed")
			}
		}
		delete(r.values, "rate")
		delete(r.values, "utilisation")
	case rate:
		s.arrivals.Rate = r.number("rate", 1e-6, 1e9)
		if utilisation { // the user set both: one from below would have been taken away
			r.number("utilisation", leastLoad, mostLoad)
			r.refuse("rate", "it or -utilisation %s, not both", r.text("utilisation"))
		}
	case r.from("rate") == byUser: // and nothing, which has been refused
	default:
		s.utilisation = r.number("utilisation", leastLoad, mostLoad)
		s.arrivals.Rate = 1
		if capacity(s.fleet0()) == 0 {
			s.utilisation = 0
			if len(r.problems) > 0 {
				return // what is wrong may be why
			}
			r.refuse("utilisation", "-rate instead, as endpoints of -concurrency %d and -service %s have no end of capacity", s.concurrency, r.text("service"))
		}
	}
}

// fleet0 is the fleet as far as it has been read when the load is.
func (s *settings) fleet0() sim.Scenario {
	part := *s
	part.utilisation = 0
	return part.fleet()
}

func (r *reader) streams(s *settings) {
	s.streams = r.number("streams", 0, 1)
	s.streamTime = r.law("stream-time")
	kinds := map[string]picker.Kind{"stream": picker.Stream, "unary": picker.Unary, "unknown": picker.UnknownKind}
	s.streamKind = kinds[r.oneOf("stream-kind", "stream", "unary", "unknown")]
	if s.streams == 0 {
		r.pointless("stream-time", "-streams above 0")
		r.pointless("stream-kind", "-streams above 0")
	}
}

// speeds reads the speeds of n endpoints.
func (r *reader) speeds(name string, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1
	}
	text := r.text(name)
	if text == "none" || text == "" {
		return out
	}
	var last []float64
	for item := range strings.SplitSeq(text, ",") {
		before, after, found := strings.Cut(strings.TrimSpace(item), "x")
		count, err := strconv.Atoi(before)
		speed, ok := part(after)
		if !found || err != nil || !ok || count < 1 || count > n || !(speed >= 1e-4 && speed <= 1e4) {
			r.refuse(name, "none, or COUNTxSPEED of up to %s, separated by commas, speeds from 0.0001 to 10000", plural(n, "endpoint"))
			return out
		}
		for range count {
			last = append(last, speed)
		}
	}
	if len(last) > n {
		r.refuse(name, "speeds of at most %s, as -endpoints says, not of %d", plural(n, "endpoint"), len(last))
		return out
	}
	copy(out[n-len(last):], last)
	return out
}
