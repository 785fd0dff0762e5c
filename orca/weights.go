package orca

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// Estimate is what the reports of one endpoint say. The zero Estimate has seen none. It is
// written at the end of each request, by any number of goroutines at once, and never copied.
type Estimate struct {
	weight      atomic.Uint64 // float64 bits
	utilization atomic.Uint64 // float64 bits
	since       atomic.Int64  // instant + 1 of the first report without a gap; 0: none
	last        atomic.Int64  // instant + 1 of the latest report; 0: none
}

// Reset forgets all reports, as after a reconnection to what may be another process.
func (e *Estimate) Reset() {
	e.last.Store(0)
	e.since.Store(0)
}

// ahead is how far a report may be ahead of an Update that it came during, whose clock was read before.
const ahead = int64(time.Second)

// dropAhead forgets reports of an instant that is yet to come. The clock has been set back since; they would not
// age, and none would be later, until it is there again.
func (e *Estimate) dropAhead(now int64) {
	if e.last.Load() > max(now, 0)+1+ahead {
		e.Reset()
	}
}

// Last returns the instant of the latest report that was used, and whether there is one.
func (e *Estimate) Last() (instant int64, ok bool) {
	last := e.last.Load()
	return last - 1, last > 0
}

// Utilization returns the utilization of the latest report that was used; 0 if there is none.
func (e *Estimate) Utilization() float64 {
	if e.last.Load() == 0 {
		return 0
	}
	return math.Float64frombits(e.utilization.Load())
}

// Weights turns reports into weights by one configuration. Take may be called by any number
// of goroutines; everything else belongs to the owner's lock.
type Weights struct {
	config  WeightConfig // set at construction, defaults filled in
	sources []source     // set at construction

	// Guarded by the owner.
	due    int64     // instant of the next recomputation
	fresh  []float64 // scratch
	sorted []float64 // scratch
}

// NewWeights returns weights by a configuration, or its problems.
func NewWeights(c WeightConfig) (*Weights, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	w := &Weights{config: c.withDefaults()}
	for _, key := range w.config.Utilization {
		s, _ := sourceOf(key)
		w.sources = append(w.sources, s)
	}
	return w, nil
}

// Take notes a report for an endpoint, received at instant now, and tells whether it was used. One
// without a rate or without a utilization says nothing, and one with a number that cannot
// be (NaN, an infinity, below 0) is broken: then the estimate stays as it was, its age too.
//
// The weight is QPS / (utilization + EPS/QPS · ErrorPenalty): what the endpoint could answer in
// a second if it were fully used. It is the latest report's, not a mean: a backend
// averages over a time of its own already. It neither locks nor allocates.
//
//	"weight = qps / (utilization + eps/qps * error_utilization_penalty)" - gRFC A58
func (w *Weights) Take(e *Estimate, r *Report, now int64) bool {
	weight, u := w.weigh(r)
	if !(weight > 0) {
		return false
	}
	now = max(now, 0) + 1
	last := e.last.Load()
	// A Reset between the two stores of another Take leaves no beginning.
	if last == 0 || e.since.Load() == 0 || now-last >= int64(w.config.Expiry) {
		// Two that both find the gap differ by the time between their calls.
		e.since.Store(now)
	}
	// A backend measures some ten times a second, so that most reports say what the one before did: then its
	// numbers need no store, each of which would be most of what this costs.
	if bits := math.Float64bits(weight); e.weight.Load() != bits {
		e.weight.Store(bits)
	}
	if bits := math.Float64bits(u); e.utilization.Load() != bits {
		e.utilization.Store(bits)
	}
	// The last store: who sees the instant sees a weight. An older instant than the stored one, of
	// two results that crossed, does not make the report older.
	if now > last {
		e.last.Store(now)
	}
	return true
}

// Bounds of a weight by itself: within them products with the other bounds, and halves, are exact
// enough.
const (
	leastRaw = 1e-300
	mostRaw  = 1e300
)

// weigh returns the weight of one report, 0 if it has none.
func (w *Weights) weigh(r *Report) (weight, u float64) {
	u, ok := utilization(r, w.sources)
	if !ok || u == 0 || !(r.QPS > 0 && r.QPS <= math.MaxFloat64) || !(r.EPS >= 0 && r.EPS <= math.MaxFloat64) {
		return 0, 0
	}
	cost := u
	if p := w.config.ErrorPenalty; p > 0 {
		cost += r.EPS / r.QPS * p
	}
	// Numbers from the ends of float64 are believed no more than others, and bounded like them
	// where weights meet; here they only must not become 0 or infinite on the way.
	return min(max(r.QPS/cost, leastRaw), mostRaw), u
}

// usable returns the endpoint's weight at instant now, 0 if it is unknown: without reports, in
// blackout, or expired.
func (w *Weights) usable(e *Estimate, now int64) float64 {
	last := e.last.Load()
	since := e.since.Load()
	now = max(now, 0) + 1
	switch {
	case last == 0 || since == 0:
		return 0
	case now-last >= int64(w.config.Expiry):
		return 0
	case now-since < int64(w.config.Blackout):
		return 0
	}
	return math.Float64frombits(e.weight.Load())
}

// Known reports whether the endpoint's reports count at instant now. Any goroutine may call it.
func (w *Weights) Known(e *Estimate, now int64) bool { return w.usable(e, now) > 0 }

// Period returns the least time between two recomputations.
func (w *Weights) Period() time.Duration { return w.config.Period }

// Recent reports whether the endpoint has reported within Expiry before instant now, in the blackout too. Any
// goroutine may call it.
func (w *Weights) Recent(e *Estimate, now int64) bool {
	last := e.last.Load()
	return last > 0 && max(now, 0)+1-last < int64(w.config.Expiry)
}

// Due reports whether a period has passed since the last Update, or the clock was set back since.
func (w *Weights) Due(now int64) bool { return now >= w.due || w.due-now > int64(w.config.Period) }

// Update recomputes the weights of the endpoints at instant now and reports whether they changed.
// weights[i] is of endpoints[i], and holds what the caller uses now: 0 where it has none yet.
// Nothing is written unless a weight changes by more than the hysteresis; then all are.
//
// The unit is the median of the known weights that are believed, those within Least and Most times
// the median of all that are known. All are cut to Least and Most times that. Where the greatest
// possible or the least possible number is one report away, a mean would be what that report
// says; a median is what the others say, while most of them are sound. Of two endpoints nobody can
// tell which lies: then the heavier gets at most Most times what the other does.
//
// An unknown endpoint weighs as much as that median: the known that are not believed have no say in it. With fewer
// than two known all weigh 1, as gRFC A58 says.
func (w *Weights) Update(weights []float64, endpoints []*Estimate, now int64) (changed bool) {
	w.due = now + int64(w.config.Period)
	n := min(len(weights), len(endpoints))
	w.fresh = w.fresh[:0]
	w.sorted = w.sorted[:0]
	for _, e := range endpoints[:n] {
		e.dropAhead(now)
		v := w.usable(e, now)
		w.fresh = append(w.fresh, v)
		if v > 0 {
			w.sorted = append(w.sorted, v)
		}
	}
	w.settle()
	for i, v := range w.fresh {
		// Not "greater": a weight that is NaN or has no old one changes.
		if !(math.Abs(v-weights[i]) <= max(w.config.Hysteresis, 0)*weights[i]) {
			changed = true
		}
	}
	if changed {
		copy(weights, w.fresh)
	}
	return changed
}

// settle turns the raw weights in fresh, whose known ones are in sorted, into those to use.
func (w *Weights) settle() {
	if len(w.sorted) < 2 {
		for i := range w.fresh {
			w.fresh[i] = 1
		}
		return
	}
	slices.Sort(w.sorted)
	least, most := w.config.Least, w.config.Most
	unit := believed(w.sorted, least, most)
	// Not the median of all: of two that is their mean, so that one liar of two who report would be what all the
	// silent ones weigh.
	otherwise := 1.0
	if w.config.MeanForUnknown {
		otherwise = 0
		for _, v := range w.sorted {
			otherwise += min(max(v/unit, least), most) / float64(len(w.sorted))
		}
	}
	for i, v := range w.fresh {
		if v == 0 {
			w.fresh[i] = otherwise
			continue
		}
		w.fresh[i] = min(max(v/unit, least), most) // +Inf is most
	}
}

// believed returns the median of those of the sorted weights that are within least and most
// times their median.
func believed(sorted []float64, least, most float64) float64 {
	// The lower one of two: their mean would be the greater's, if that is huge.
	center := sorted[(len(sorted)-1)/2]
	from, _ := slices.BinarySearch(sorted, center*least)
	to := from
	for to < len(sorted) && sorted[to] <= center*most {
		to++
	}
	return median(sorted[from:to])
}

// median returns the middle of a sorted list, or the mean of the two in the middle.
func median(sorted []float64) float64 {
	n := len(sorted)
	return sorted[(n-1)/2]/2 + sorted[n/2]/2
}
