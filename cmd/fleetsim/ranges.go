package main

import "math"

// ranges shows three quantiles of each policy on one line each.
type ranges struct {
	id, title, desc string
	x               axis
	rows            []quantiles3
	mark            float64 // a value to compare with; NaN for none
	markName        string
}

// quantiles3 is a row.
type quantiles3 struct {
	name, class    string
	p50, p99, p999 float64
}

// draw returns the drawing in one size: names are to the left of their lines, or above
// them where it is narrow.
func (r *ranges) draw(s size) string {
	row, left := 40.0, 0.0
	for _, q := range r.rows {
		left = max(left, boldWidth(q.name)+14)
	}
	above := left > 0.25*s.width
	if above {
		row, left = 56, 8
	}
	s.height = 26 + row*float64(len(r.rows)) + 44
	d := newSVG(r.id+"-"+s.suffix, s.class, s.width, s.height, r.title, r.desc)
	f := frame{x: r.x.scale, left: left, right: s.width - 24, top: 26, bottom: s.height - 44}
	f.x.from, f.x.to = f.left, f.right
	axes := chart{x: r.x, y: axis{ticks: []float64{}}}
	for _, v := range r.x.scale.ticks(int((f.right - f.left) / 70)) {
		d.line("grid", f.x.at(v), f.top, f.x.at(v), f.bottom)
	}
	axes.drawAxes(d, f, s)
	if !math.IsNaN(r.mark) {
		x := f.x.at(r.mark)
		d.open("cb")
		d.line("line", x, f.top, x, f.bottom)
		anchor := "start"
		if x > (f.left+f.right)/2 {
			anchor = "end"
		}
		d.text("name", anchor, x, f.top-7, r.markName)
		d.close()
	}
	for i, q := range r.rows {
		base := f.top + row*float64(i)
		y := base + row - 14
		d.open(q.class)
		if above {
			d.text("name", "start", 0, base+14, q.name)
		} else {
			d.text("name", "end", left-14, y+4, q.name)
		}
		q.draw(d, f, y)
		d.close()
	}
	return d.end()
}

// draw draws the row at height y.
func (q quantiles3) draw(d *svg, f frame, y float64) {
	if math.IsNaN(q.p50) {
		return
	}
	x50, x99, x999 := f.x.at(q.p50), f.x.at(q.p99), f.x.at(q.p999)
	d.line("rod", x50, y, x999, y)
	d.line("tip", x999, y-6, x999, y+6)
	d.marker("hollow", x50, y, 4.5, "p50: "+latency(q.p50))
	d.marker("", x99, y, 5.5, "p99: "+latency(q.p99))
	half := boldWidth(latency(q.p99)) / 2
	x := min(max(x99, f.left+half), f.right+24-half)
	d.text("value", "middle", x, y-10, latency(q.p99))
}
