package orca

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// FeedbackGain returns the part of a measured difference (in logarithms of utilization) that a
// weight may be corrected by at once, for reports that come each period, are averaged by their
// backend with time constant smoothing, and are used delay after they were made:
//
//	g = min(1/2, T / (2 (T + τ + D)))
//
// A loop of delay d periods without an average is stable below 2·cos(dπ/(2d+1)); this is a
// third to a half of it at most, and less with an average, where more would overshoot. Times
// below 0 count as 0; a period of 0 has gain 0.
func FeedbackGain(period, smoothing, delay time.Duration) float64 {
	t, lag := max(period, 0).Seconds(), max(smoothing, 0).Seconds()+max(delay, 0).Seconds()
	if t == 0 {
		return 0
	}
	return min(0.5, t/(2*(t+lag)))
}

// FeedbackConfig says how [Feedback] corrects. The zero FeedbackConfig is the documented default.
type FeedbackConfig struct {
	// Smoothing is the time constant over which backends average their utilization. 0: it is
	// estimated from how the reports follow the weights, from 8 s on.
	Smoothing time.Duration

	// Delay is how old a report is when it is used, beyond the period. 0 means none.
	Delay time.Duration

	// Least and Most bound a weight, as multiples of the median, of two the lesser. 0 means 0.1 and 10.
	// Least from 1e-6 to 1, Most from 1 to 1e6.
	Least, Most float64
}

// Validate reports every problem of the configuration, joined; nil if there is none.
func (c FeedbackConfig) Validate() error {
	var problems []error
	bad := func(field string, value any, want string) {
		problems = append(problems, fmt.Errorf("orca: FeedbackConfig.%s is %v, want %s", field, value, want))
	}
	if c.Smoothing < 0 || c.Smoothing > time.Hour {
		bad("Smoothing", c.Smoothing, "0 to 1h")
	}
	if c.Delay < 0 || c.Delay > time.Hour {
		bad("Delay", c.Delay, "0 to 1h")
	}
	if v := orDefault(c.Least, 0.1); !(v >= minLeast && v <= 1) {
		bad("Least", v, "1e-6 to 1")
	}
	if v := orDefault(c.Most, 10); !(v >= 1 && v <= 1e6) {
		bad("Most", v, "1 to 1e6")
	}
	return errors.Join(problems...)
}

// maxError bounds what one report may claim, as a logarithm: 7.4 times the usual utilization.
const maxError = 2

// Feedback moves weights until all endpoints report the same utilization. [Weights] estimates
// capacities and is right as soon as reports are; Feedback measures what came of the weights,
// so that it also corrects what no report says (requests that cost more on one endpoint), slowly
// enough never to swing. Weights of 1/utilization, its undamped ancestor, either flip at each
// report or stop at half of the correction.
//
// It belongs to its owner's lock. It has no goroutine: call Update as often as reports come.
type Feedback struct {
	least, most float64 // logarithms
	delay       time.Duration
	fixed       time.Duration
	period      float64 // ns, mean of the gaps between the reports used; 0: none yet
	lag         lagFinder
	sorted      []float64 // scratch
	errors      []float64 // scratch: what each endpoint's log utilization is off by
}

// FeedbackNode is what Feedback keeps for one endpoint. The zero FeedbackNode has the usual weight.
type FeedbackNode struct {
	logWeight float64
	used      int64 // instant + 1 of the report used last; 0: none
	stepped   int64 // instant + 1 of that Update
	lag       lagNode
}

// NewFeedback returns a Feedback by a configuration, or its problems.
func NewFeedback(c FeedbackConfig) (*Feedback, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Feedback{
		least: math.Log(orDefault(c.Least, 0.1)), most: math.Log(orDefault(c.Most, 10)),
		delay: c.Delay, fixed: c.Smoothing, lag: newLagFinder(),
	}, nil
}

// Period returns the mean time between the reports of one endpoint, as seen; 0 before there were
// two.
func (f *Feedback) Period() time.Duration { return time.Duration(f.period) }

// Smoothing returns the time constant of the backends' averages: the configured one, or the
// estimate.
func (f *Feedback) Smoothing() time.Duration {
	if f.fixed > 0 {
		return f.fixed
	}
	return f.lag.smoothing()
}

// Gain returns the gain of the next Update.
func (f *Feedback) Gain() float64 {
	return FeedbackGain(f.Period(), f.Smoothing(), f.delay)
}

// Update corrects the weights by the reports that have come since the last call, and writes
// them: weights[i] is of nodes[i] and endpoints[i]. Each report is used once. An endpoint without a new
// report keeps its weight; one that has never reported has the median weight, 1. The reports
// are those that a [Weights] took.
func (f *Feedback) Update(weights []float64, nodes []*FeedbackNode, endpoints []*Estimate, now int64) {
	n := min(len(weights), len(nodes), len(endpoints))
	nodes = nodes[:n]
	for _, e := range endpoints[:n] {
		e.dropAhead(now)
	}
	f.measure(nodes, endpoints[:n])
	for i, node := range nodes {
		if math.IsNaN(f.errors[i]) {
			continue
		}
		f.step(node, f.errors[i], max(now, 0)+1)
	}
	f.lag.decide()
	f.center(nodes)
	for i, node := range nodes {
		weights[i] = math.Exp(node.logWeight)
	}
}

// measure fills f.errors: the logarithm of each utilization to the median of all, NaN for
// endpoints without a report that was not used yet.
func (f *Feedback) measure(nodes []*FeedbackNode, endpoints []*Estimate) {
	f.errors, f.sorted = f.errors[:0], f.sorted[:0]
	// Once at each: reports come meanwhile, and what is compared has to be among those it is compared with.
	for i, e := range endpoints {
		last, ok := e.Last()
		u := e.Utilization()
		if !ok || !(u > 0) {
			f.errors = append(f.errors, math.NaN())
			continue
		}
		log := math.Log(u)
		f.sorted = append(f.sorted, log)
		if last+1 == nodes[i].used {
			log = math.NaN()
		}
		nodes[i].used = last + 1
		f.errors = append(f.errors, log)
	}
	if len(f.sorted) == 0 {
		return
	}
	slices.Sort(f.sorted)
	usual := median(f.sorted)
	for i, log := range f.errors {
		if !math.IsNaN(log) {
			f.errors[i] = min(max(log-usual, -maxError), maxError)
		}
	}
}

// periodPart is the weight of one gap in the mean of them.
const periodPart = 1.0 / 64

// step corrects one endpoint's weight by its error.
func (f *Feedback) step(node *FeedbackNode, off float64, now int64) {
	if node.stepped == 0 {
		node.stepped = now
		node.lag.begin(off, node.logWeight)
		return
	}
	gap := float64(min(max(now-node.stepped, 0), int64(time.Hour)))
	node.stepped = now
	if f.period == 0 {
		f.period = gap
	}
	f.period += (gap - f.period) * periodPart
	f.lag.observe(&node.lag, off, node.logWeight, gap)
	node.logWeight -= f.Gain() * off
}

// center keeps the median weight at 1, so that weights cannot drift together, and cuts the others.
func (f *Feedback) center(nodes []*FeedbackNode) {
	f.sorted = f.sorted[:0]
	for _, node := range nodes {
		if node.stepped != 0 {
			f.sorted = append(f.sorted, node.logWeight)
		}
	}
	if len(f.sorted) == 0 {
		return
	}
	slices.Sort(f.sorted)
	// The lower one of two in the middle: of two endpoints the heavier has at most Most times what the other has.
	middle := f.sorted[(len(f.sorted)-1)/2]
	for _, node := range nodes {
		if node.stepped != 0 {
			node.lag.shift(middle)
			node.logWeight = min(max(node.logWeight-middle, f.least), f.most)
		}
	}
}
