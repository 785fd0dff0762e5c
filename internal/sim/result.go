package sim

import (
	"slices"
	"time"
)

// Result is what one run of a scenario with one policy and one seed gave. The same
// three give the same Result, to the last bit.
type Result struct {
	// Scenario and Policy are the names; Seed is the seed.
	Scenario, Policy string
	Seed             uint64
	// Load is [Scenario.Load]; Overloaded says that it is 1 or more, so that queues grow
	// as long as traffic lasts and latencies say how long that was.
	Load       float64
	Overloaded bool
	// Picks is how many picks were made, those of the warm-up included.
	Picks int
	// LateSweeps counts sweeps that a pick had to do; there should be none.
	LateSweeps uint64
	// Ejections is how often each server was ejected, by all clients together, since it joined
	// their lists; nil with a bound.
	Ejections []int
	// End is when the last request was settled.
	End time.Duration
	// Total is the run after its warm-up, Windows are the scenario's, in its order.
	Total   Window
	Windows []Window
	// Buckets is the time series, the warm-up included; nil if none was asked for.
	Buckets []Bucket
}

// Window returns the window of that name, nil if there is none.
func (r *Result) Window(name string) *Window {
	i := slices.IndexFunc(r.Windows, func(w Window) bool { return w.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Windows[i]
}

// Window is what the requests that arrived in one part of a run met.
type Window struct {
	Span
	Outcomes
	// Picks is how many of the requests each server got, those that it failed included.
	Picks []int
	// ClassPicks is the same for each class.
	ClassPicks [][]int
	// MaxInFlight is the most requests that each server had in flight at once during the
	// window, as clients count: picked and neither answered nor given up.
	MaxInFlight []int
	// Busy is each server's mean number of working workers during the window; of servers
	// with any number of them, the requests at hand.
	Busy []float64
}

// Outcomes counts how requests ended and how long they took: until the answer, good or
// bad, or until the client gave up.
type Outcomes struct {
	// Requests is how many there were, each of which is one of the following or a success.
	Requests int
	// Failed were answered with a failure, TimedOut given up, Unsent found no server, and
	// Unanswered never ended, as a server hung and clients have no timeout.
	Failed, TimedOut, Unsent, Unanswered int
	// Good are the latencies of successes; bad those of all others but Unanswered.
	Good, bad Histogram
}

// Success returns the part of the requests that succeeded, 1 of none.
func (o *Outcomes) Success() float64 {
	if o.Requests == 0 {
		return 1
	}
	return float64(o.Good.n) / float64(o.Requests)
}

// Latency returns the latencies of all requests, failed ones included.
func (o *Outcomes) Latency() *Histogram {
	if o.bad.n == 0 {
		return &o.Good
	}
	all := &Histogram{}
	all.Merge(&o.Good)
	all.Merge(&o.bad)
	return all
}

// Share returns server i's part of the requests that were sent.
func (w *Window) Share(i int) float64 {
	sum := 0
	for _, n := range w.Picks {
		sum += n
	}
	if sum == 0 {
		return 0
	}
	return float64(w.Picks[i]) / float64(sum)
}

// MaxOverMean returns the greatest of counts over their mean, 1 of nothing.
func MaxOverMean(counts []int) float64 {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	if sum == 0 {
		return 1
	}
	return float64(slices.Max(counts)) * float64(len(counts)) / float64(sum)
}

// Bucket is one step of the time series.
type Bucket struct {
	// From is its beginning.
	From time.Duration
	// Outcomes are those of the requests that arrived in it.
	Outcomes
	// Picks is how many of them each server got.
	Picks []int
	// InFlight is each server's mean number of requests in flight, as clients count.
	InFlight []float64
	// Ejected is how many clients have each server ejected at its end; nil of policies that
	// are known to eject nobody.
	Ejected []int
}

// record counts how a request ended.
func (o *Outcomes) record(kind ending, latency int64) {
	switch kind {
	case succeeded:
		o.Good.add(latency)
		return
	case failed:
		o.Failed++
	case timedOut:
		o.TimedOut++
	case unsent:
		o.Unsent++
	case unanswered:
		o.Unanswered++
		return
	}
	o.bad.add(latency)
}

// ending is how a request ended for its client.
type ending uint8

const (
	succeeded ending = iota
	failed
	timedOut
	unsent
	unanswered
)
