package main

import (
	"cmp"
	"math"
	"slices"
)

// chart is lines over two axes. It is drawn in several sizes.
type chart struct {
	id, title, desc string
	x, y            axis
	series          []series
	bands           []band
	own             float64 // a value of x that is marked as the fleet as it is; NaN for none
}

// axis is a scale with its labels.
type axis struct {
	title string
	scale scale
	label func(float64) string
	ticks []float64 // nil: as many as there is room for
}

// series is one line.
type series struct {
	name, class string
	points      []place // in values; NaN leaves a gap
	marked      bool    // a marker at each point
	tip         func(place) string
}

// band is a part of the x axis in which something happens.
type band struct {
	label       string
	from, until float64
}

// size is that of a drawing, with what tells the drawings of one chart apart.
type size struct {
	suffix, class string
	width, height float64
}

var (
	wide   = size{"w", "wide", 560, 330}
	narrow = size{"n", "narrow", 360, 270}
)

const (
	lineHeight = 15
	labelGap   = 8
)

// frame is where on a drawing the axes are.
type frame struct {
	x, y                     scale
	left, right, top, bottom float64
	labelled                 bool // there is room for names at the ends of lines
}

// draw returns the chart in one size.
func (c *chart) draw(s size) string {
	d := newSVG(c.id+"-"+s.suffix, s.class, s.width, s.height, c.title, c.desc)
	f := c.frame(s)
	c.drawBands(d, f)
	c.drawAxes(d, f, s)
	if !math.IsNaN(c.own) {
		x := f.x.at(c.own)
		d.line("own", x, f.top, x, f.bottom)
		anchor := "start"
		if x > (f.left+f.right)/2 {
			anchor, x = "end", x-2*4
		}
		d.text("tag", anchor, x+4, f.top-5, "this fleet")
	}
	for _, line := range c.order() {
		d.open(line.class)
		at := make([]place, len(line.points))
		for i, p := range line.points {
			at[i] = place{f.x.at(p.x), f.y.at(p.y)}
			if math.IsNaN(p.y) {
				at[i].y = math.NaN()
			}
		}
		d.path("line", at)
		for i, p := range at {
			if line.marked && !math.IsNaN(p.y) {
				d.marker(line.class, p.x, p.y, 3.6, line.tip(line.points[i]))
			}
		}
		d.close()
	}
	if f.labelled {
		c.drawEnds(d, f)
	}
	return d.end()
}

// order returns the lines from back to front: the bound first, the default policy last.
func (c *chart) order() []series {
	rank := func(s series) int {
		switch s.class {
		case "cb":
			return 0
		case "c0":
			return 2
		}
		return 1
	}
	out := slices.Clone(c.series)
	slices.SortStableFunc(out, func(a, b series) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

// frame works out the margins.
func (c *chart) frame(s size) frame {
	f := frame{x: c.x.scale, y: c.y.scale, top: 34, bottom: s.height - 42, right: s.width - 10}
	if n := len(c.bands); n > 0 {
		f.top += lineHeight * float64(c.tagRows()-1)
	}
	left := 0.0
	for _, v := range c.yTicks(f) {
		left = max(left, textWidth(c.y.label(v)))
	}
	f.left = left + labelGap + 2
	longest := 0.0
	for _, line := range c.series {
		longest = max(longest, boldWidth(line.name))
	}
	if longest+labelGap+4 <= 0.27*s.width {
		f.labelled = true
		f.right = s.width - longest - labelGap - 4
	}
	f.x.from, f.x.to = f.left, f.right
	f.y.from, f.y.to = f.bottom, f.top
	return f
}

// tagRows returns how many lines the names of the bands take: several where they are close
// together.
func (c *chart) tagRows() int { return min(len(c.bands), 3) }

func (c *chart) yTicks(f frame) []float64 {
	if c.y.ticks != nil {
		return c.y.ticks
	}
	return c.y.scale.ticks(max(int((f.bottom-f.top)/36), 3))
}

func (c *chart) drawAxes(d *svg, f frame, s size) {
	d.open("axes")
	if c.y.title != "" {
		d.text("axis", "start", 0, 12, c.y.title)
	}
	for _, v := range c.yTicks(f) {
		y := f.y.at(v)
		d.line("grid", f.left, y, f.right, y)
		d.text("tick", "end", f.left-labelGap, y+4, c.y.label(v))
	}
	ticks := c.x.ticks
	if ticks == nil {
		ticks = c.x.scale.ticks(max(int((f.right-f.left)/44), 2))
	}
	free := math.Inf(-1)
	for _, v := range ticks {
		x, text := f.x.at(v), c.x.label(v)
		d.line("base", x, f.bottom, x, f.bottom+4)
		half := textWidth(text) / 2
		x = min(x, s.width-half)
		if x-half < free {
			continue // would touch its neighbour
		}
		d.text("tick", "middle", x, f.bottom+17, text)
		free = x + half + 4
	}
	d.line("base", f.left, f.bottom, f.right, f.bottom)
	if c.x.title != "" {
		d.text("axis", "middle", (f.left+f.right)/2, f.bottom+35, c.x.title)
	}
	d.close()
}

// drawBands shades what happens, with its names above.
func (c *chart) drawBands(d *svg, f frame) {
	rows := c.tagRows()
	for i, b := range c.bands {
		x1, x2 := f.x.at(b.from), f.x.at(b.until)
		d.rect("band", x1, f.top, x2-x1, f.bottom-f.top)
		y := f.top - 5 - lineHeight*float64(rows-1-i%rows)
		d.line("edge", x1, y-6, x1, f.bottom)
		anchor, x := "start", x1+4
		if x+boldWidth(b.label) > f.right+20 {
			anchor, x = "end", x2
		}
		d.text("tag", anchor, x, y, b.label)
	}
}

// drawEnds writes the names of lines at their ends, apart from each other.
func (c *chart) drawEnds(d *svg, f frame) {
	type end struct {
		series
		y, at float64
	}
	var ends []end
	for _, line := range c.series {
		for i := len(line.points) - 1; i >= 0; i-- {
			if p := line.points[i]; !math.IsNaN(p.y) {
				ends = append(ends, end{line, f.y.at(p.y), f.y.at(p.y)})
				break
			}
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.y, b.y) })
	places := make([]float64, len(ends))
	for i, e := range ends {
		places[i] = e.y
	}
	spread(places, lineHeight, f.top, f.bottom)
	for i, e := range ends {
		d.open(e.class)
		if math.Abs(places[i]-e.y) > 4 {
			d.line("leader", f.right+1, e.y, f.right+labelGap-1, places[i])
		}
		d.text("name", "start", f.right+labelGap, places[i]+4, e.name)
		d.close()
	}
}

// spread moves ascending places apart until they are gap from each other, as little as that
// takes, and keeps them between low and high if they fit.
func spread(places []float64, gap, low, high float64) {
	for range 200 {
		moved := false
		for i := 1; i < len(places); i++ {
			if lack := gap - (places[i] - places[i-1]); lack > 0.01 {
				places[i-1] -= lack / 2
				places[i] += lack / 2
				moved = true
			}
		}
		if n := len(places); n > 0 && float64(n-1)*gap <= high-low {
			places[0], places[n-1] = max(places[0], low), min(places[n-1], high)
		}
		if !moved {
			return
		}
	}
}
