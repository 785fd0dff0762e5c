package outlier

import (
	"cmp"
	"math"
	"slices"
)

// Who has an unusual failure rate. The mean and the standard deviation are moved by the very
// endpoints they are to find, so that a fifth of them hide each other; the median and the
// median deviation stand up to half.
const (
	// madScale makes a median deviation comparable to a standard deviation (of normally
	// distributed rates), and deviations count from three of those on.
	madScale      = 1.4826
	madDeviations = 3
	// leastDeviation, in parts of 1, is what a difference must be to matter to anybody,
	// however alike the others are.
	leastDeviation = 0.10
	// chanceErrors standard errors of the pool's own rate are chance: with few requests it
	// spreads rates, and they come in steps, so that the median deviation may be 0. Three
	// would eject one in 400 looks at endpoints that are all alike.
	chanceErrors = 4
	// leastFailures: a few failures are a run of bad luck.
	leastFailures = 5
	// An endpoint below floorRate while the median is at least floorMedian is out of order
	// however much the others differ.
	floorRate   = 0.5
	floorMedian = 0.9
)

// sample is one endpoint's requests in its window.
type sample struct {
	id        string
	good, bad uint64
	// rate is good / (good + bad), or that of an earlier window of a host with too
	// few requests in this one.
	rate float64
	// full says that the window has enough requests to judge it by.
	full bool
}

// unusual returns the indices of the full samples to eject, worst first.
func unusual(samples []sample) []int {
	rates := make([]float64, len(samples))
	var good, bad float64
	for i, s := range samples {
		rates[i] = s.rate
		good, bad = good+float64(s.good), bad+float64(s.bad)
	}
	middle := median(rates)
	for i, s := range samples {
		rates[i] = math.Abs(s.rate - middle)
	}
	margin := max(leastDeviation, madDeviations*madScale*median(rates))
	var found []int
	for i, s := range samples {
		if !s.full || s.bad < leastFailures {
			continue
		}
		q := bad / (good + bad)
		chance := chanceErrors * math.Sqrt(q*(1-q)/float64(s.good+s.bad))
		if s.rate < middle-max(margin, chance) || s.rate < floorRate && middle >= floorMedian {
			found = append(found, i)
		}
	}
	// Ties go by ID, so that the order of the list decides nothing where the cap does.
	slices.SortFunc(found, func(a, b int) int {
		return cmp.Or(cmp.Compare(samples[a].rate, samples[b].rate), cmp.Compare(samples[a].id, samples[b].id))
	})
	return found
}

// median sorts v and returns its middle.
func median(v []float64) float64 {
	slices.Sort(v)
	n := len(v)
	if n == 0 {
		return math.NaN()
	}
	return (v[(n-1)/2] + v[n/2]) / 2
}

// sweepRates looks at the windows that are full. A host's window goes on until it has
// the volume, and others have too; until then its last full one stands for it.
func (d *Detector) sweepRates() {
	ignoreLate := d.distressed()
	var hosts []*Host
	var samples []sample
	for _, h := range d.hosts {
		if h.standing != Usable || State(h.state.Load()) == Ejected {
			continue
		}
		if s, ok := d.sampleOf(h, ignoreLate); ok {
			hosts, samples = append(hosts, h), append(samples, s)
		}
	}
	enough := len(samples) >= d.rules.minHosts
	if enough {
		for _, k := range unusual(samples) {
			d.tryEject(hosts[k], FailureRate, 100)
		}
	}
	for k, h := range hosts {
		if enough && samples[k].full && State(h.state.Load()) != Ejected {
			d.restartWindow(h)
			h.lastRate, h.rateAt, h.hasRate = samples[k].rate, d.now, true
		}
	}
	for _, h := range d.hosts {
		if d.now-h.windowFrom >= d.rules.maxWindow {
			last, at, has := h.lastRate, h.rateAt, h.hasRate
			d.restartWindow(h)
			h.lastRate, h.rateAt, h.hasRate = last, at, has
		}
	}
}

// sampleOf returns what the host's window says; ok is false if nothing yet.
func (d *Detector) sampleOf(h *Host, ignoreLate bool) (s sample, ok bool) {
	t := h.tally()
	s.id = h.id
	s.good, s.bad = parts(t.answers, h.window.answers)
	if _, late := parts(t.locals, h.window.locals); !ignoreLate {
		s.bad += late
	}
	if s.good+s.bad >= uint64(d.rules.volume) {
		s.rate, s.full = float64(s.good)/float64(s.good+s.bad), true
		return s, true
	}
	s.rate = h.lastRate
	return s, h.hasRate && d.now-h.rateAt <= d.rules.maxWindow
}
