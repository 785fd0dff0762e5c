package main

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestTicksAreRoundAndNotTooMany(t *testing.T) {
	for _, row := range []struct {
		got, want []float64
	}{
		{linearTicks(0, 60, 6), []float64{0, 10, 20, 30, 40, 50, 60}},
		{linearTicks(0, 0.31, 4), []float64{0, 0.1, 0.2, 0.3}},
		{linearTicks(0.25, 0.97, 4), []float64{0.4, 0.6, 0.8}},
		{linearTicks(0, 0, 4), []float64{0}},
		{logTicks(50, 9000, 7), []float64{50, 100, 200, 500, 1000, 2000, 5000}},
		{logTicks(6.5, 16, 7), []float64{7, 8, 9, 10, 12, 15}},
		{logTicks(10, 990, 4), []float64{10, 30, 100, 300}},
		{logTicks(1e-3, 1e7, 6), []float64{0.001, 0.1, 10, 1000, 100000, 1e7}},
		{scale{kind: logOfOneMore, high: 600}.ticks(5), []float64{0, 1, 10, 100}},
	} {
		if !slices.Equal(row.got, row.want) {
			t.Errorf("%v, want %v", row.got, row.want)
		}
	}
}

func TestScalesKeepWhatTheyShow(t *testing.T) {
	for low := 1e-4; low < 1e6; low *= 7 {
		for high := low; high < 1e9; high *= 3 {
			s := logScale(low, high)
			s.from, s.to = 100, 0
			if a, b := s.at(low), s.at(high); !(a < 100 && b > 0 && a >= b) {
				t.Fatalf("%v to %v are at %v and %v", low, high, a, b)
			}
			if n := len(s.ticks(6)); n > 6 || n < 1 {
				t.Fatalf("%v to %v: %d ticks", low, high, n)
			}
		}
		if s := linearScale(low); s.high < low || s.high > 3*low {
			t.Fatalf("%v: up to %v", low, s.high)
		}
	}
	for _, none := range []float64{math.Inf(1), math.NaN(), 0} {
		if s := logScale(none, 0); !(s.low > 0 && s.high > s.low) {
			t.Errorf("nothing to show: %+v", s)
		}
	}
}

func TestNamesAtLineEndsDoNotTouch(t *testing.T) {
	for _, places := range [][]float64{{10, 10, 10, 10}, {0, 100}, {95, 96, 97, 98, 100}, {0, 1, 50, 99}, {}} {
		before := slices.Clone(places)
		spread(places, 15, 0, 100)
		for i := range places {
			if i > 0 && places[i]-places[i-1] < 14.9 || places[i] < -0.1 || places[i] > 100.1 {
				t.Errorf("%v became %v", before, places)
				break
			}
		}
	}
	places := []float64{20, 60}
	if spread(places, 15, 0, 100); places[0] != 20 || places[1] != 60 {
		t.Errorf("moved without need: %v", places)
	}
}

func TestALineHasGapsWhereThereIsNothing(t *testing.T) {
	nan := math.NaN()
	d := &svg{}
	d.path("line", []place{{0, nan}, {1, 1}, {2, 2}, {3, nan}, {4, 4}, {5, nan}})
	if want := `<path class="line" d="M1,1L2,2M4,4h0.1"/>`; d.end() != want+"</svg>" {
		t.Errorf("%s, want %s", d.end(), want)
	}
	d = &svg{}
	d.path("line", []place{{0, nan}})
	if d.end() != "</svg>" {
		t.Errorf("nothing gives %s", d.end())
	}
}

func TestAnAreaHasGapsWhereThereIsNothing(t *testing.T) {
	nan := math.NaN()
	d := &svg{}
	d.area("range", []place{{0, nan}, {1, 1}, {2, 2}, {3, nan}, {4, 4}}, []place{{0, nan}, {1, 5}, {2, 6}, {3, nan}, {4, 8}})
	if want := `<path class="range" d="M1,1L2,2L2,6L1,5ZM4,4L4,8Z"/></svg>`; d.end() != want {
		t.Errorf("%s, want %s", d.end(), want)
	}
	d = &svg{}
	if d.area("range", []place{{0, nan}}, []place{{0, nan}}); d.end() != "</svg>" {
		t.Errorf("nothing gives %s", d.end())
	}
}

// invented is a chart with all that a chart can have.
func invented() *chart {
	label := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	return &chart{
		id: "chart", title: `A <title> & "quotes"`, desc: "What it shows.",
		x:     axis{title: "time (s)", scale: scale{kind: linear, high: 10}, label: label},
		y:     axis{title: "p99", scale: logScale(1, 100), label: latencyLabel},
		bands: []band{{"#1 slow", 2, 4}, {"a long name near the right end", 8, 10}},
		own:   3,
		series: []series{
			{name: "default", class: "c0", points: []place{{0, 2}, {5, 3}, {10, 4}}, marked: true, tip: func(place) string { return "<tip>" }},
			{name: "p2c", class: "c1", points: []place{{0, 5}, {5, math.NaN()}, {10, 4.1}}},
			{name: "none", class: "c2", points: []place{{0, math.NaN()}}},
			{name: "jsed", class: "cb", points: []place{{0, 1}, {10, 100}}},
		},
	}
}

func TestCharts(t *testing.T) {
	c := invented()
	text := c.draw(wide) + "\n" + c.draw(narrow) + "\n"
	r := &ranges{
		id: "ranges", title: "Ranges", desc: "Three quantiles.", mark: 3, markName: "bound",
		x:    axis{title: "latency", scale: logScale(1, 100), label: latencyLabel},
		rows: []quantiles3{{"default", "c0", 1, 3, 9}, {"none", "c1", math.NaN(), math.NaN(), math.NaN()}, {"jsed", "cb", 2, 3, 4}},
	}
	text += r.draw(wide) + "\n" + r.draw(narrow) + "\n"
	p := &panel{
		id: "panel", title: "Panel", desc: "Lines.", name: "default", class: "c0", x: c.x, y: panelAxis(panelFigures[0], 30), bands: c.bands,
		ordinary: [][]place{{{0, 10}, {10, 12}}}, special: [][]place{{{0, 10}, {10, 1}}},
	}
	p.x.title = ""
	text += p.draw() + "\n"
	for range maxThreads {
		p.ordinary = append(p.ordinary, []place{{0, 8}, {10, 25}})
	}
	text += p.draw() + "\n"
	wellFormed(t, "<div>"+text+"</div>")
	golden(t, "charts.svg.txt", strings.ReplaceAll(text, "><", ">\n<"))
}
