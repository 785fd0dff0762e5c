package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// meanWork is the mean service time on a healthy server. It is long beside what a
	// request costs the machine, so that servers are busy while the processor is not.
	meanWork = 10 * time.Millisecond
	// timeout is how long a client waits. Without one the queue of the slow server would
	// grow until the end.
	timeout = 2 * time.Second
	// hiccup is from which delay on the machine is to blame, which had something else to
	// do: it is far more than a timer needs.
	hiccup = 10 * time.Millisecond
)

// request is one of the requests that every lane sends.
type request struct {
	due  time.Duration // when to send it, since the start
	work time.Duration // its service time on a healthy server
}

// plan returns the requests in the order of sending: a Poisson process with
// exponential service times, which depend on the settings alone.
func plan(s settings) []request {
	random := rand.New(rand.NewPCG(s.seed, 0))
	gap := float64(time.Second) / float64(s.rate)
	var requests []request
	for due := 0.0; ; {
		due += random.ExpFloat64() * gap
		if due >= float64(s.duration) {
			return requests
		}
		requests = append(requests, request{
			due:  time.Duration(due),
			work: time.Duration(random.ExpFloat64() * float64(meanWork)),
		})
	}
}

// load sends the same requests to several lanes at the same instants.
type load struct {
	settings
	requests []request
	lanes    []*lane

	reached atomic.Int64 // due time of the last request sent, in nanoseconds

	// Results of run.
	paused time.Duration // sum of what putOff returned
	unsent int           // requests for which there was no time left
}

func newLoad(s settings, lanes []*lane) *load {
	d := &load{settings: s, requests: plan(s), lanes: lanes}
	for _, l := range lanes {
		l.prepare(len(d.requests))
	}
	return d
}

// at returns how far the load has got.
func (d *load) at() time.Duration { return time.Duration(d.reached.Load()) }

// inOutage reports whether a server fails when the load has got to due.
func (s settings) inOutage(due time.Duration) bool {
	return due >= s.duration/3 && due < 2*s.duration/3
}

// run sends each request when it is due, whether earlier ones have been answered or
// not, and returns when all have ended. A context that is done ends it early, and so
// does the time when it is half as long again as it should be.
func (d *load) run(ctx context.Context) {
	var open sync.WaitGroup
	defer open.Wait()
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i, r := range d.requests {
		if d.paused+r.due >= d.duration+d.duration/2 {
			d.unsent = len(d.requests) - i
			return
		}
		due := start.Add(d.paused + r.due)
		timer.Reset(time.Until(due))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		due = due.Add(d.putOff(time.Since(due)))
		d.reached.Store(int64(r.due))
		for _, l := range d.lanes {
			l.fleet.outage.Store(d.inOutage(r.due))
			open.Go(func() { l.send(ctx, i, due, r.work) })
		}
	}
}

// putOff returns by how much a request is put off that is late already, and with it all
// that come after, in all lanes. That is when the machine had no time for this process:
// a burst of what was missed would be a load that nobody asked for.
func (d *load) putOff(late time.Duration) time.Duration {
	if late <= hiccup {
		return 0
	}
	d.paused += late
	return late
}
