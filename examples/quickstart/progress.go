package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// progress tells once a second how it goes: in one line that is drawn again and
// again, or in a line each where nobody could see that.
type progress struct {
	out    io.Writer
	redraw bool
}

// isTerminal reports whether w is a terminal, or close enough to one.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// show returns when over is closed.
func (p *progress) show(d *load, over <-chan struct{}) {
	fmt.Fprintf(p.out, "errors so far, %s / %s:\n", roundRobin, evenkeel)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.draw(progressLine(d))
		case <-over:
			if p.redraw {
				fmt.Fprintln(p.out)
			}
			return
		}
	}
}

func (p *progress) draw(line string) {
	if p.redraw {
		const clearToEnd = "\x1b[K"
		fmt.Fprint(p.out, "\r", line, clearToEnd)
		return
	}
	fmt.Fprintln(p.out, line)
}

// progressLine returns the line of now, less than 80 characters wide.
func progressLine(d *load) string {
	var line strings.Builder
	fmt.Fprintf(&line, "%4.0f of %g s", d.at().Seconds(), d.duration.Seconds())
	for i := 0; i+1 < len(d.lanes); i += 2 {
		fmt.Fprintf(&line, "   %s %6s / %-6s", d.lanes[i].transport,
			thousands(d.lanes[i].errors.Load()), thousands(d.lanes[i+1].errors.Load()))
	}
	if d.inOutage(d.at()) {
		line.WriteString("  one fails")
	}
	return strings.TrimRight(line.String(), " ")
}
