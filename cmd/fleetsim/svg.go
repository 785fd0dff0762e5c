package main

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// svg is a drawing that grows. Colours and fonts come from the page's style, by class.
type svg struct{ b strings.Builder }

// newSVG begins a drawing of a size in units that are pixels where it is not scaled. title
// and desc are what it is for who cannot see it.
func newSVG(id, class string, width, height float64, title, desc string) *svg {
	d := &svg{}
	fmt.Fprintf(&d.b, `<svg id="%s" class="%s" viewBox="0 0 %s %s" role="img" aria-labelledby="%s-t %s-d">`,
		id, class, coord(width), coord(height), id, id)
	fmt.Fprintf(&d.b, `<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, id, html.EscapeString(title), id, html.EscapeString(desc))
	return d
}

// end returns the drawing.
func (d *svg) end() string { return d.b.String() + "</svg>" }

// coord writes a place, to a tenth.
func coord(v float64) string {
	if math.Abs(v) < 0.05 {
		return "0"
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

func (d *svg) open(class string) { fmt.Fprintf(&d.b, `<g class="%s">`, class) }

func (d *svg) close() { d.b.WriteString("</g>") }

func (d *svg) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&d.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, coord(x1), coord(y1), coord(x2), coord(y2))
}

func (d *svg) rect(class string, x, y, width, height float64) {
	fmt.Fprintf(&d.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`, class, coord(x), coord(y), coord(width), coord(height))
}

// text writes one line; anchor is start, middle or end.
func (d *svg) text(class, anchor string, x, y float64, text string) {
	fmt.Fprintf(&d.b, `<text class="%s" x="%s" y="%s" text-anchor="%s">%s</text>`, class, coord(x), coord(y), anchor, html.EscapeString(text))
}

// path draws through points; one that is not a number leaves a gap.
func (d *svg) path(class string, points []place) {
	var b strings.Builder
	pen := byte('M')
	for i, p := range points {
		if math.IsNaN(p.x) || math.IsNaN(p.y) {
			pen = 'M'
			continue
		}
		b.WriteByte(pen)
		b.WriteString(coord(p.x) + "," + coord(p.y))
		alone := pen == 'M' && (i+1 == len(points) || math.IsNaN(points[i+1].y))
		if alone {
			b.WriteString("h0.1") // a round cap makes a dot of it
		}
		pen = 'L'
	}
	if b.Len() > 0 {
		fmt.Fprintf(&d.b, `<path class="%s" d="%s"/>`, class, b.String())
	}
}

// area fills what is between two lines from left to right, which have the same gaps.
func (d *svg) area(class string, above, below []place) {
	var b strings.Builder
	for from := 0; from < len(above); {
		until := from
		for until < len(above) && !math.IsNaN(above[until].y) {
			until++
		}
		pen := byte('M')
		for _, p := range above[from:until] {
			b.WriteByte(pen)
			b.WriteString(coord(p.x) + "," + coord(p.y))
			pen = 'L'
		}
		for i := until - 1; i >= from; i-- {
			b.WriteString("L" + coord(below[i].x) + "," + coord(below[i].y))
		}
		if until > from {
			b.WriteString("Z")
		}
		from = until + 1
	}
	if b.Len() > 0 {
		fmt.Fprintf(&d.b, `<path class="%s" d="%s"/>`, class, b.String())
	}
}

// marker draws a shape that differs from class to class, so that colour is not all there is.
// tip appears where a pointer rests on it.
func (d *svg) marker(class string, x, y, size float64, tip string) {
	title := "<title>" + html.EscapeString(tip) + "</title>"
	if tip == "" {
		title = ""
	}
	polygon := func(corners ...float64) {
		var points []string
		for i := 0; i+1 < len(corners); i += 2 {
			points = append(points, coord(x+corners[i]*size)+","+coord(y+corners[i+1]*size))
		}
		fmt.Fprintf(&d.b, `<polygon class="mark" points="%s">%s</polygon>`, strings.Join(points, " "), title)
	}
	switch class {
	case "c1":
		polygon(-0.9, -0.9, 0.9, -0.9, 0.9, 0.9, -0.9, 0.9)
	case "c2":
		polygon(0, -1.2, 1.1, 0.8, -1.1, 0.8)
	case "c3":
		polygon(0, -1.3, 1.2, 0, 0, 1.3, -1.2, 0)
	case "c4":
		polygon(0, 1.2, 1.1, -0.8, -1.1, -0.8)
	case "c5":
		polygon(-0.4, -1.2, 0.4, -1.2, 0.4, -0.4, 1.2, -0.4, 1.2, 0.4, 0.4, 0.4, 0.4, 1.2, -0.4, 1.2, -0.4, 0.4, -1.2, 0.4, -1.2, -0.4, -0.4, -0.4)
	default:
		kind := "mark"
		if class == "hollow" {
			kind = "hollow"
		}
		fmt.Fprintf(&d.b, `<circle class="%s" cx="%s" cy="%s" r="%s">%s</circle>`, kind, coord(x), coord(y), coord(size), title)
	}
}

// place is a point of a drawing.
type place struct{ x, y float64 }

// textWidth estimates how wide a text of the size of labels is, rather too much: fonts
// differ.
func textWidth(text string) float64 { return 6.8 * float64(utf8.RuneCountInString(text)) }

// boldWidth is that of a name.
func boldWidth(text string) float64 { return 7.6 * float64(utf8.RuneCountInString(text)) }

// sample is a short piece of a policy's line with its marker, for legends.
func sample(class string) string {
	d := &svg{}
	fmt.Fprintf(&d.b, `<svg class="sample %s" viewBox="0 0 34 12" aria-hidden="true">`, class)
	d.line("line", 1, 6, 33, 6)
	d.marker(class, 17, 6, 3.4, "")
	return d.end()
}
