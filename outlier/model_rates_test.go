package outlier_test

import (
	"math"
	"slices"
	"sort"

	"github.com/evenkeel/evenkeel/outlier"
)

// row is one host's requests of a window.
type row struct {
	h               *mHost
	good, bad, rate float64
	full            bool
}

// rows are those of the hosts that have a rate, now or from an earlier window.
func (m *model) rows(spare bool) (rows []row) {
	for _, h := range m.hosts {
		if h.out || h.standing != outlier.Usable {
			continue
		}
		r := row{h: h, good: float64(h.count(h.window, vGood)), bad: float64(h.count(h.window, vBad))}
		if !spare {
			r.bad += float64(h.count(h.window, vLate))
		}
		if r.full = r.good+r.bad >= 6; r.full {
			r.rate = r.good / (r.good + r.bad)
		} else if h.hasRate && m.now-h.rateAt <= 60*second {
			r.rate = h.rate
		} else {
			continue
		}
		rows = append(rows, r)
	}
	return rows
}

// rates is the comparison with the median, host by host.
func (m *model) rates() {
	if rows := m.rows(m.guard()); len(rows) >= 3 {
		m.ejectUnusual(rows)
		for _, r := range rows {
			if r.full && !r.h.out {
				r.h.restart(m.now)
				r.h.rate, r.h.rateAt, r.h.hasRate = r.rate, m.now, true
			}
		}
	}
	for _, h := range m.hosts {
		if m.now-h.windowAt >= 60*second {
			has := h.hasRate
			h.restart(m.now)
			h.hasRate = has
		}
	}
}

func (m *model) ejectUnusual(rows []row) {
	var good, bad float64
	all := make([]float64, len(rows))
	for i, r := range rows {
		good, bad, all[i] = good+r.good, bad+r.bad, r.rate
	}
	mid := middleOf(all)
	for i, r := range rows {
		all[i] = math.Abs(r.rate - mid)
	}
	mad := middleOf(all)
	q := bad / (good + bad)
	sort.SliceStable(rows, func(a, b int) bool {
		return rows[a].rate < rows[b].rate || rows[a].rate == rows[b].rate && rows[a].h.id < rows[b].h.id
	})
	for _, r := range rows {
		margin := math.Max(math.Max(0.10, 3*1.4826*mad), 4*math.Sqrt(q*(1-q)/(r.good+r.bad)))
		if r.full && r.bad >= 5 && (mid-r.rate > margin || r.rate < 0.5 && mid >= 0.9) {
			m.eject(r.h)
		}
	}
}

func middleOf(v []float64) float64 {
	v = slices.Clone(v)
	sort.Float64s(v)
	if len(v)%2 == 1 {
		return v[len(v)/2]
	}
	return (v[len(v)/2-1] + v[len(v)/2]) / 2
}

// sweepTimed is the interval of Envoy and of A50: for each kind of results first the mean, then the limit,
// over those that took part before.
func (m *model) sweepTimed() {
	envoy := m.mode == outlier.Envoy
	if envoy {
		m.release()
	}
	before := map[*mHost]int{}
	for _, h := range m.hosts {
		before[h], h.window = h.window, len(h.log)
	}
	rows := m.volumes(before, vGood, vBad)
	m.ejectBelowMean(rows)
	m.ejectAbove(rows, 85)
	if envoy && m.split {
		m.ejectBelowMean(m.volumes(before, vLGood, vLBad)) // percentages of local origin are not enforced
	}
	if !envoy {
		m.release()
		return
	}
	for _, h := range m.hosts {
		if h.mult > 0 && !h.out && m.now-h.backAt >= 10*second {
			h.mult--
		}
	}
}

func (m *model) release() {
	for _, h := range m.hosts {
		if h.out && m.now >= h.outAt+h.term {
			m.back(h)
		} else if m.mode == outlier.A50 && !h.out && h.mult > 0 {
			h.mult--
		}
	}
}

func (m *model) volumes(from map[*mHost]int, g, b verdict) (rows []row) {
	for _, h := range m.hosts {
		r := row{h: h, good: float64(h.count(from[h], g)), bad: float64(h.count(from[h], b))}
		if r.good+r.bad >= 6 && h.standing != outlier.Drained && !(m.mode == outlier.Envoy && h.out) {
			rows = append(rows, r)
		}
	}
	return rows
}

func (m *model) ejectBelowMean(rows []row) {
	if len(rows) < 3 {
		return
	}
	mean, dev := 0.0, 0.0
	for _, r := range rows {
		mean += 100 * r.good / (r.good + r.bad) / float64(len(rows))
	}
	for _, r := range rows {
		dev += math.Pow(100*r.good/(r.good+r.bad)-mean, 2) / float64(len(rows))
	}
	factor := 1.9
	if m.mode == outlier.A50 {
		factor = 0.9
	}
	for _, r := range rows {
		if mean-factor*math.Sqrt(dev)-100*r.good/(r.good+r.bad) > 1e-9 {
			m.eject(r.h)
		}
	}
}

func (m *model) ejectAbove(rows []row, limit float64) {
	if len(rows) < 3 {
		return
	}
	for _, r := range rows {
		share := 100 * r.bad / (r.good + r.bad)
		if m.mode == outlier.Envoy && share >= limit || share > limit {
			m.eject(r.h)
		}
	}
}
