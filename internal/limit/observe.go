package limit

import "sync/atomic"

// Kind says what a finished request tells of the load.
type Kind uint8

// The kinds. What is none of them tells nothing and is not observed: refusals of the client's
// own, picks that became no request, streams.
const (
	// Answered is an answer: its latency counts against the time that the request had.
	Answered Kind = iota
	// TimedOut is a request whose time ran out after it was sent.
	TimedOut
	// Left is a request that its caller gave up, or that failed: its latency is a lower bound,
	// so that it counts if it is long already, and not at all otherwise.
	Left
)

// verdict is how near to its deadline a request ended.
type verdict uint8

const (
	quick    verdict = iota // within an eighth of its time
	fair                    // within a half
	unseen                  // an answer whose time nobody took, or without a deadline: taken for fair
	late                    // within three fifths
	near                    // later still, or never
	verdicts = 5
)

// Shares of a request's time. Distress, which brings the limit into being, goes by
// nearShare. Thin clients need 20 results to see it, a few seconds; a share of 4/5
// cost a hundred of them five points of the incident in incident_test.go. The limit is then
// steered to keep the median at lateShare.
const (
	quickShare = 1. / 8
	lateShare  = 1. / 2
	nearShare  = 3. / 5
)

// judge returns the verdict on a request that took latency of allowed nanoseconds; ok
// is false if it says nothing.
func judge(k Kind, latency, allowed int64) (v verdict, ok bool) {
	if k == TimedOut {
		return near, true
	}
	v = unseen
	if allowed > 0 {
		v = fair
		switch share := float64(latency) / float64(allowed); {
		case share > nearShare:
			v = near
		case share > lateShare:
			v = late
		case share <= quickShare:
			v = quick
		}
	}
	return v, k == Answered || k == Left && v >= late
}

// tally is what was observed in some time.
type tally [verdicts]int64

// total returns the number of results.
func (t *tally) total() (n int64) {
	for _, c := range t {
		n += c
	}
	return n
}

// distress reports whether too many were near their deadline: more than 5 %, and not one or
// two, which happen on any day.
func (t *tally) distress() bool { return t[near] >= distressLeast && t[near]*20 > t.total() }

// slow reports whether the median was late.
func (t *tally) slow() bool { return 2*(t[late]+t[near]) > t.total() }

// quick reports whether the median came at once.
func (t *tally) quick() bool { return 2*t[quick] > t.total() }

// mayBeQuick reports whether the median came at once, as far as anybody knows.
func (t *tally) mayBeQuick() bool { return 2*(t[quick]+t[unseen]) > t.total() }

// Observe takes the end of a request: what it tells, how long it took, and how long it had
// from its start to its deadline or per-try timeout (0: no bound). Any number of
// goroutines may call it; it costs one atomic addition and allocates nothing.
// Requests of long life (streams, upgrades) are not observed.
//
// The owner who calls [Limiter.Ended] may leave out answers to requests without a bound.
func (l *Limiter) Observe(k Kind, latency, allowed int64) {
	if l.state.Load() == disabled {
		return
	}
	if v, ok := judge(k, latency, allowed); ok {
		l.tokens.own().counts[v].Add(1)
		return
	}
	l.tokens.own().passed.Add(1)
}

// Pass takes the end of a request that is not to be observed, from an owner who calls [Limiter.Ended].
func (l *Limiter) Pass() {
	if l.state.Load() != disabled {
		l.tokens.own().passed.Add(1)
	}
}

// Ended tells how many requests have ended since the last call, by the owner's own count, just before
// Sweep. Those that were neither observed nor passed were answered, in whatever time: nearly
// all are, and need not write anything here. The owner counts an end after it is
// observed or passed; one in between makes up for itself in the next call.
func (l *Limiter) Ended(n int64) {
	if l.state.Load() == disabled {
		return
	}
	if l.untold { // it was on for a part of that time, and nobody knows for which
		l.collect()
		l.untold, l.ended = false, 0
		return
	}
	l.ended += n
	l.byEnds = true
}

// collect takes what was observed since the last call.
func (l *Limiter) collect() (t tally) {
	passed := int64(0)
	for i := range l.tokens.stripes {
		s := &l.tokens.stripes[i]
		for v := range t {
			t[v] += take(&s.counts[v])
		}
		passed += take(&s.passed)
	}
	if l.byEnds {
		l.ended -= t.total() + passed
		if l.ended > 0 {
			t[unseen] += l.ended
			l.ended = 0
		}
	}
	return t
}

// take empties a counter. It loads first, so that an idle stripe's line stays where it is.
func take(c *atomic.Int64) int64 {
	if c.Load() == 0 {
		return 0
	}
	return c.Swap(0)
}
