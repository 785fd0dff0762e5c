package main

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/picker"
)

// Bounds of what one run may cost: far beyond them it would take the machine's memory.
const (
	maxRequests = 10_000_000
	maxRecords  = 2_000_000 // clients × endpoints
	maxSteps    = 500
	maxUpdates  = 100_000_000 // endpoints in all lists that all clients get, and tables renewed
)

// Bounds of -utilisation.
const leastLoad, mostLoad = 0.001, 10

const defaultDuration = time.Minute

// load reads how requests come.
func (r *reader) load(s *settings) {
	kinds := map[string]sim.ArrivalKind{"poisson": sim.Poisson, "even": sim.Even, "bursts": sim.Bursts, "closed": sim.Closed}
	s.arrivals.Kind = kinds[r.oneOf("arrivals", "poisson", "even", "bursts", "closed")]
	s.arrivals.On, s.arrivals.Period = r.duration("on", 1, forever), r.duration("period", 1, forever)
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
	default:
		s.utilisation = r.number("utilisation", leastLoad, mostLoad)
		s.arrivals.Rate = 1
		if capacity(s.fleet0()) == 0 {
			r.refuse("utilisation", "-rate instead, as endpoints of -concurrency %d and -service %s have no end of capacity", s.concurrency, r.text("service"))
			s.utilisation = 0
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
	if len(r.problems) > 0 {
		return
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

// html checks that the page can be written, and leaves nothing behind.
func (r *reader) html(s *settings) {
	if s.html == "" {
		return
	}
	info, err := os.Stat(s.html)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		var f *os.File
		if f, err = os.CreateTemp(filepath.Dir(s.html), ".fleetsim-*"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	case err == nil && info.IsDir():
		err = errors.New("is a directory")
	case err == nil:
		var f *os.File
		if f, err = os.OpenFile(s.html, os.O_WRONLY, 0); err == nil {
			err = f.Close()
		}
	}
	if err == nil {
		return
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	r.refuse("html", "a file that can be written: %v", err)
}
