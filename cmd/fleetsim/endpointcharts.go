package main

import (
	"fmt"
	"math"
	"strconv"
)

// panelFigure is what the small charts of each endpoint show.
type panelFigure struct {
	id, title string
	of        func(s *step, runs, endpoint int) float64
	unit      string
}

var panelFigures = []panelFigure{
	{"share", "Share of the requests", func(s *step, _, i int) float64 {
		sum := 0
		for _, n := range s.picks {
			sum += n
		}
		if sum == 0 {
			return math.NaN()
		}
		return 100 * float64(s.picks[i]) / float64(sum)
	}, "%"},
	{"queue", "Requests in flight", func(s *step, runs, i int) float64 {
		return s.inFlight[i] / float64(runs)
	}, "requests"},
}

// panels returns the small charts of a figure, one for each policy, all with the same
// axes.
func (r *report) panels(figure panelFigure) []*panel {
	var out []*panel
	most := 0.0
	for i, row := range r.rows {
		p := &panel{
			id: fmt.Sprintf("%s-%d", figure.id, i), name: row.label(), class: row.class,
			title: fmt.Sprintf("%s of each endpoint over time, %s", figure.title, row.label()),
			x:     r.timeAxis(true), bands: r.bands(),
		}
		for e := range r.endpoints {
			line := make([]place, len(row.tally.steps))
			for k := range row.tally.steps {
				s := &row.tally.steps[k]
				line[k] = place{r.onTimeAxis(s.from + r.scenario.Bucket/2), figure.of(s, row.tally.runs, e)}
			}
			if r.isSpecial(e) {
				p.special = append(p.special, line)
			} else {
				p.ordinary = append(p.ordinary, line)
			}
		}
		most = max(most, greatest(p.special), greatest(p.ordinary))
		p.desc = fmt.Sprintf("Endpoints that are like most reach %s %s at most, those of interest %s %s.",
			digits(greatest(p.ordinary)), figure.unit, digits(greatest(p.special)), figure.unit)
		out = append(out, p)
	}
	y := panelAxis(figure, most)
	for _, p := range out {
		p.y = y
	}
	return out
}

// isSpecial reports whether something happens to an endpoint, or it is one of the slowest.
func (r *report) isSpecial(endpoint int) bool {
	for _, f := range r.focuses {
		if endpoint >= f.first && endpoint < f.first+f.count {
			return true
		}
	}
	return false
}

// panelAxis is linear for shares and for short queues, and else such that queues of one
// and of thousands can both be seen.
func panelAxis(figure panelFigure, most float64) axis {
	a := axis{label: func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }}
	if figure.unit == "%" {
		a.scale, a.label = linearScale(most), percentLabel
		a.scale.high = min(a.scale.high, 100)
		a.ticks = a.scale.ticks(4)
		return a
	}
	a.scale = linearScale(most)
	if most > 20 {
		a.scale = scale{kind: logOfOneMore, high: most * 1.1}
		a.label = func(v float64) string { return whole(int(v)) }
		a.ticks = a.scale.ticks(5)
		return a
	}
	a.ticks = a.scale.ticks(4)
	return a
}
