package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// How long a run has to be before it is worth a word, how often it then gets one, and from
// when on and down to what it is said how much is left.
const (
	quietFor   = time.Second
	redrawnIn  = time.Second / 10
	repeatedIn = 5 * time.Second
	guessFrom  = 3 * time.Second
	guessLeast = 5 * time.Second
)

// progress tells how far the runs are: in one line that is drawn again and again, or in
// a line every few seconds where nobody could see that. Its methods may be called from
// several goroutines.
type progress struct {
	out    io.Writer
	redraw bool
	now    func() time.Time

	mu            sync.Mutex // guards the rest
	total, runs   int
	parts         float64 // of runs, as far as they tell
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
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total, p.began = total, p.now()
	p.last = p.began
}

// done is told the number of runs that are done.
func (p *progress) done(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs = n
	p.show()
}

// worked is told that a run has got on by a part of itself.
func (p *progress) worked(part float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parts += part
	p.show()
}

// show tells how far the runs are if it is time to; the caller holds mu.
func (p *progress) show() {
	if p.runs == p.total {
		p.clear()
		return
	}
	now := p.now()
	pause := repeatedIn
	if p.redraw {
		pause = redrawnIn
	}
	if now.Sub(p.began) < quietFor || p.somethingSaid && now.Sub(p.last) < pause {
		return
	}
	p.last, p.somethingSaid = now, true
	// Runs tell a little less than they do, and nothing for certain of their last part.
	part := min(max(float64(p.runs), p.parts)/float64(p.total), 0.99)
	line := fmt.Sprintf("simulating: %d of %d runs (%d %%)", p.runs, p.total, int(100*part))
	taken := now.Sub(p.began)
	if left := time.Duration(float64(taken) * (1 - part) / max(part, 1e-3)); taken >= guessFrom && left >= guessLeast {
		line += ", about " + roughly(left) + " left"
	}
	if p.redraw {
		fmt.Fprint(p.out, "\r", line, clearToEnd)
		return
	}
	fmt.Fprintln(p.out, line)
}

// roughly returns d as one whole number.
func roughly(d time.Duration) string {
	switch {
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()+0.5))
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d min", int(d.Minutes()+0.5))
	}
	return fmt.Sprintf("%d s", int(d.Seconds()+0.5))
}

const clearToEnd = "\x1b[K"

// clear leaves the line to the table that follows.
func (p *progress) clear() {
	if p.redraw && p.somethingSaid {
		fmt.Fprint(p.out, "\r", clearToEnd)
		p.somethingSaid = false
	}
}
