package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// How long a run has to be before it is worth a word, and how often it then gets one.
const (
	quietFor   = time.Second
	redrawnIn  = time.Second / 10
	repeatedIn = 5 * time.Second
)

// progress tells how far the runs are: in one line that is drawn again and again, or in
// a line every few seconds where nobody could see that. Its methods are called from one
// goroutine at a time.
type progress struct {
	out    io.Writer
	redraw bool
	now    func() time.Time

	total         int
	began, last   time.Time
	somethingSaid bool
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

func (p *progress) start(total int) {
	p.total, p.began = total, p.now()
	p.last = p.began
}

// done is told the number of runs that are done.
func (p *progress) done(n int) {
	now := p.now()
	if n == p.total {
		p.clear()
		return
	}
	pause := repeatedIn
	if p.redraw {
		pause = redrawnIn
	}
	if now.Sub(p.began) < quietFor || p.somethingSaid && now.Sub(p.last) < pause {
		return
	}
	p.last, p.somethingSaid = now, true
	line := fmt.Sprintf("simulating: %d of %d runs (%d %%)", n, p.total, 100*n/p.total)
	if p.redraw {
		fmt.Fprint(p.out, "\r", line, clearToEnd)
		return
	}
	fmt.Fprintln(p.out, line)
}

const clearToEnd = "\x1b[K"

// clear leaves the line to the table that follows.
func (p *progress) clear() {
	if p.redraw && p.somethingSaid {
		fmt.Fprint(p.out, "\r", clearToEnd)
	}
}
