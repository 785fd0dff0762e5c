package probe

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel/internal/health"
)

const (
	// maxRunning is how many checks one Runner makes at a time. Those that time out hold their
	// places longest: 64 are enough for a tenth of 3,000 endpoints at the default interval.
	maxRunning = 64
	// After firstBurst first checks no other begins for firstPause, so that those of a long list do
	// not all meet in one moment: a thousand take a third of a second.
	firstBurst = 16
	firstPause = 5 * time.Millisecond
)

// flight is one check on its way.
type flight struct{ cancel context.CancelFunc }

// shared is a prober and who uses it. It is guarded by the Runner's mu.
type shared struct {
	Prober
	running int
	retired bool
}

type (
	leaver interface{ Left(addr string) }
	closer interface{ Close() }
)

// loop begins checks when they are due, until the Runner is stopped.
func (r *Runner) loop() {
	timer := time.NewTimer(math.MaxInt64)
	defer timer.Stop()
	for {
		r.mu.Lock()
		timer.Reset(r.dispatch(r.now()))
		r.mu.Unlock()
		select {
		case <-timer.C:
		case <-r.wake:
		case <-r.ctx.Done():
			r.end()
			return
		}
	}
}

// end waits for the checks, which were cancelled, and closes their prober.
func (r *Runner) end() {
	r.checkers.Wait()
	r.mu.Lock()
	p := r.prober
	r.mu.Unlock()
	if p != nil {
		p.close()
	}
}

// nudge has the loop look again what is due.
func (r *Runner) nudge() {
	select {
	case r.wake <- struct{}{}:
	default: // it is about to
	}
}

// dispatch begins the checks that are due, and returns for how long there will be no other, unless
// the loop is woken. mu is held.
func (r *Runner) dispatch(now int64) (wait time.Duration) {
	r.readUse(now)
	for firsts := 0; r.prober != nil && !r.stopped && r.running < maxRunning; {
		if now < r.paced {
			return time.Duration(r.paced - now)
		}
		c, ok := r.checks.Due(now)
		if !ok {
			return time.Duration(max(r.checks.Next()-now, 0))
		}
		if c.First {
			if firsts++; firsts == firstBurst {
				r.paced = now + int64(firstPause)
			}
		}
		r.launch(c)
	}
	return math.MaxInt64 // whoever ends wakes the loop
}

// launch begins one check. mu is held.
func (r *Runner) launch(c health.Check) {
	ctx, cancel := context.WithTimeout(r.ctx, r.config.Timeout)
	f := &flight{cancel}
	m := r.members[c.ID]
	m.flight = f
	p := r.prober
	p.running++
	r.running++
	r.checkers.Add(1)
	go func(addr string, timeout time.Duration) {
		defer r.checkers.Done()
		result, detail := p.Probe(ctx, addr)
		if ctx.Err() == context.DeadlineExceeded {
			result, detail = health.Failed, "no answer within "+timeout.String()
		}
		cancel()
		r.finish(c, f, p, result, detail)
	}(m.addr, r.config.Timeout)
}

// finish takes the result of a check.
func (r *Runner) finish(c health.Check, f *flight, p *shared, result health.Result, detail string) {
	r.mu.Lock()
	r.running--
	p.running--
	r.closeUnused(p)
	// One that was broken off is nobody's by now: its endpoint has left, and may have come back, or speaks
	// for itself.
	if m := r.members[c.ID]; m != nil && m.flight == f {
		m.flight = nil
		now := r.now()
		r.readUse(now)
		_, changed := r.checks.Done(c, result, clip(detail), now)
		r.judge(c.ID, m, result == health.Passed, changed)
	}
	r.flush()
	r.nudge()
}

// retire says that a prober gets no new checks. mu is held.
func (r *Runner) retire(p *shared) {
	p.retired = true
	r.closeUnused(p)
}

// closeUnused closes a prober that is retired, when its last check has ended. mu is held.
func (r *Runner) closeUnused(p *shared) {
	if p.retired && p.running == 0 {
		r.later = append(r.later, p.close)
	}
}

func (p *shared) close() {
	if c, ok := p.Prober.(closer); ok {
		c.Close()
	}
}

// Stop ends all checks and does not wait for them; the prober is closed after the last. Nothing is said
// of them. Calling it again does nothing.
func (r *Runner) Stop() {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.cancel()
}

// maxDetail bounds what is kept of a prober's account.
const maxDetail = 200

// clip shortens an account.
func clip(s string) string {
	if len(s) <= maxDetail {
		return s
	}
	return strings.ToValidUTF8(s[:maxDetail], "") + "..."
}
