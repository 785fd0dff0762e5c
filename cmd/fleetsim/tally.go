package main

import (
	"math"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/internal/sim"
)

// tally is what the main runs of one policy gave, over all seeds.
type tally struct {
	plan *plan
	runs int

	whole      span   // without the warm-up
	windows    []span // of the incidents
	unanswered int
	overloaded bool

	steps       []step
	picks       []int     // of each endpoint, without the warm-up
	busy        []float64 // sums of the mean numbers of working workers
	maxInFlight []int
}

// span is the figures of a part of the run, one for each seed. Times are in milliseconds.
type span struct {
	requests, errors, p50, p99, p999, mean, goodP99, most, evenness []float64
	shares                                                          [][]float64 // of each focus
}

// step is one step of the time series, of all seeds together.
type step struct {
	from          time.Duration
	latency       sim.Histogram
	requests, bad int
	picks         []int
	inFlight      []float64 // sums over the seeds
	ejected       []int     // the clients that have each endpoint ejected at its end; nil if nobody ejects
}

func millis(d time.Duration) float64 { return float64(d) / 1e6 }

func newTally(p *plan) *tally {
	return &tally{
		plan: p, windows: make([]span, len(p.scenario.Windows)),
		picks: make([]int, p.endpoints), busy: make([]float64, p.endpoints), maxInFlight: make([]int, p.endpoints),
	}
}

// fold adds one run.
func (t *tally) fold(r *sim.Result) {
	t.runs++
	t.whole.fold(&r.Total, t.plan.focuses)
	for i := range t.windows {
		t.windows[i].fold(&r.Windows[i], t.plan.focuses)
	}
	t.unanswered += r.Total.Unanswered
	t.overloaded = t.overloaded || r.Overloaded
	for i := range t.picks {
		t.picks[i] += r.Total.Picks[i]
		t.busy[i] += r.Total.Busy[i]
		t.maxInFlight[i] = max(t.maxInFlight[i], r.Total.MaxInFlight[i])
	}
	if t.steps == nil {
		t.steps = make([]step, len(r.Buckets))
	}
	for i := range r.Buckets {
		t.steps[i].fold(&r.Buckets[i])
	}
}

func (s *span) fold(w *sim.Window, focuses []focus) {
	all := w.Latency()
	quantile := func(q float64) float64 { return noneAsNaN(all, millis(all.Quantile(q))) }
	s.requests = append(s.requests, float64(w.Requests))
	s.errors = append(s.errors, 1-w.Success())
	s.p50, s.p99, s.p999 = append(s.p50, quantile(0.5)), append(s.p99, quantile(0.99)), append(s.p999, quantile(0.999))
	s.mean = append(s.mean, noneAsNaN(all, millis(all.Mean())))
	s.goodP99 = append(s.goodP99, noneAsNaN(&w.Good, millis(w.Good.Quantile(0.99))))
	s.most = append(s.most, float64(slices.Max(w.MaxInFlight)))
	s.evenness = append(s.evenness, sim.MaxOverMean(w.Picks))
	shares := make([]float64, len(focuses))
	for i, f := range focuses {
		for k := f.first; k < f.first+f.count; k++ {
			shares[i] += w.Share(k)
		}
	}
	s.shares = append(s.shares, shares)
}

// noneAsNaN returns v, or NaN if nothing was counted.
func noneAsNaN(h *sim.Histogram, v float64) float64 {
	if h.Count() == 0 {
		return math.NaN()
	}
	return v
}

// share returns the mean share of focus i.
func (s *span) share(i int) float64 {
	sum := 0.0
	for _, shares := range s.shares {
		sum += shares[i]
	}
	return sum / float64(len(s.shares))
}

func (s *step) fold(b *sim.Bucket) {
	s.from = b.From
	s.latency.Merge(b.Latency())
	s.requests += b.Requests
	s.bad += b.Requests - b.Good.Count()
	if s.picks == nil {
		s.picks, s.inFlight = make([]int, len(b.Picks)), make([]float64, len(b.InFlight))
	}
	for i := range b.Picks {
		s.picks[i] += b.Picks[i]
		s.inFlight[i] += b.InFlight[i]
	}
	if s.ejected == nil && b.Ejected != nil {
		s.ejected = make([]int, len(b.Ejected))
	}
	for i, n := range b.Ejected {
		s.ejected[i] += n
	}
}

// mean returns the mean of values, NaN of none.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// deviation returns the standard deviation of values, NaN of one or none.
func deviation(values []float64) float64 {
	m, sum := mean(values), 0.0
	for _, v := range values {
		sum += float64((v - m) * (v - m))
	}
	return math.Sqrt(sum / float64(len(values)-1))
}
