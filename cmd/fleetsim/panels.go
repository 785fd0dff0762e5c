package main

import (
	"math"
	"slices"
)

// panel is one of several small charts that share their axes: a line for each endpoint.
type panel struct {
	id, title, desc string
	name, class     string // the policy
	x, y            axis
	bands           []band
	ordinary        [][]place // endpoints that are like most
	special         [][]place // those that something happens to
}

// maxThreads is how many grey lines can still be seen one by one, and maxSpecial how many
// of a colour are worth it.
const maxThreads, maxSpecial = 16, 40

var small = size{"p", "panel", 300, 190}

// draw returns the panel.
func (p *panel) draw() string {
	s := small
	d := newSVG(p.id, s.class, s.width, s.height, p.title, p.desc)
	c := chart{x: p.x, y: p.y, bands: p.bands}
	f := frame{x: p.x.scale, y: p.y.scale, top: 28, bottom: s.height - 24, right: s.width - 8}
	for _, v := range p.y.ticks {
		f.left = max(f.left, textWidth(p.y.label(v))+labelGap)
	}
	f.x.from, f.x.to = f.left, f.right
	f.y.from, f.y.to = f.bottom, f.top
	for _, b := range p.bands {
		d.rect("band", f.x.at(b.from), f.top, f.x.at(b.until)-f.x.at(b.from), f.bottom-f.top)
	}
	c.drawAxes(d, f, s)
	class := p.class
	if len(p.special) == 0 {
		class += " all" // nothing stands out, so that everything may have the policy's colour
	}
	d.open(class)
	d.text("heading", "start", 0, 13, p.name)
	if len(p.ordinary) <= maxThreads {
		for _, line := range p.ordinary {
			d.path("thread", f.places(line))
		}
	} else {
		drawRange(d, f, p.ordinary, "range", "thread")
	}
	if len(p.special) <= maxSpecial {
		for _, line := range p.special {
			d.path("line", f.places(line))
		}
	} else {
		drawRange(d, f, p.special, "range special", "line")
	}
	d.close()
	return d.end()
}

// places returns where points of values are.
func (f frame) places(points []place) []place {
	out := make([]place, len(points))
	for i, p := range points {
		out[i] = place{f.x.at(p.x), f.y.at(p.y)}
	}
	return out
}

// drawRange shows many endpoints as the range that they are in, and their median.
func drawRange(d *svg, f frame, lines [][]place, area, median string) {
	n := len(lines[0])
	low, middle, high := make([]place, n), make([]place, n), make([]place, n)
	values := make([]float64, len(lines))
	for i := range n {
		for k, line := range lines {
			values[k] = line[i].y
		}
		slices.Sort(values)
		x := lines[0][i].x
		low[i], high[i] = place{x, values[0]}, place{x, values[len(values)-1]}
		middle[i] = place{x, values[len(values)/2]}
	}
	d.area(area, f.places(high), f.places(low))
	d.path(median, f.places(middle))
}

// greatest returns the greatest value of lines, 0 of none.
func greatest(lines [][]place) float64 {
	v := 0.0
	for _, line := range lines {
		for _, p := range line {
			if !math.IsNaN(p.y) {
				v = max(v, p.y)
			}
		}
	}
	return v
}
