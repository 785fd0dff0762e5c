package picker

import (
	"cmp"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
)

// What is known of an endpoint that gets no requests is from before. That it fades is not enough: if
// it let requests wait for seconds where others answer within a millisecond, it is minutes until it
// looks as good as they do, and capacity that has long been back is missing. So with
// [NeedMeanPrior], an endpoint that has had no request for a while gets the next one, whatever it looks
// like, and a better answer then replaces what was known of its latency instead of weighing a tenth.
//
// That while does not depend on how long the endpoint let requests wait. It is longer for services that
// take long, and where little is sent: an endpoint gets one in lookPart of its fair share that way at most.
const (
	lookAfter     = 45 * time.Second
	lookLatencies = 450 // the same, at ten latencies a second
	lookPart      = 64
	// lookAtOnce: in one sweep, one and one more of that many endpoints become due. Those that went
	// down together would become due together, and requests would fail in a row.
	lookAtOnce = 64
)

// patience is how long an endpoint may be without requests before it is looked at again, if enough are sent.
func (g *Registry) patience() time.Duration {
	return max(lookAfter, time.Duration(lookLatencies*ewma.Exp2(min(g.met, 50<<16))))
}

// unasked says since when an endpoint has had no request.
type unasked struct {
	since int64  // instant of the sweep
	picks uint64 // how many the pool had had by then
}

// isUnasked reports whether the endpoint has had no request for long although it could have had some, given how
// many it had since the last sweep. One that has left requests unanswered waits for longer, the more
// of them: without a time limit, one that never answers would swallow one after the other.
func (g *Registry) isUnasked(r *Record, picks uint64, now int64, patience time.Duration) bool {
	marks := r.marks.Load()
	if picks > 0 || marks&(markAway|markAvoided|markShare) != 0 {
		delete(g.unasked, r)
		return false
	}
	u, ok := g.unasked[r]
	if !ok || u.since > now {
		g.unasked[r] = unasked{now, g.picks}
		return false
	}
	if marks&markDue != 0 {
		return false // no comparison had it since
	}
	unanswered := max(r.open()-r.streams.Load(), 1)
	return (now-u.since)/unanswered >= int64(patience) && g.picks-u.picks >= lookPart*uint64(g.members)
}

// lookAgain makes those due that have had no request for the longest. Of two that are due in the same comparison
// one loses, and is due again at the next sweep.
func (g *Registry) lookAgain() {
	if len(g.due) == 0 {
		return
	}
	slices.SortFunc(g.due, func(a, b *Record) int {
		return cmp.Or(cmp.Compare(g.unasked[a].since, g.unasked[b].since), cmp.Compare(a.serial, b.serial))
	})
	for _, r := range g.due[:min(len(g.due), 1+g.members/lookAtOnce)] {
		r.mark(markDue)
	}
	clear(g.due) // it keeps no record alive
}

// takesLook reports whether a comparison is the first since the endpoint became due, which it wins.
func (r *Record) takesLook() bool {
	if r.marks.And(^uint32(markDue))&markDue == 0 {
		return false
	}
	r.mark(markLooked)
	return true
}

// startOver forgets the latencies from before if a sample of x nanoseconds, lg in logarithms, is the answer to a
// look, and better than they were.
func (r *Record) startOver(lg, x, now int64, l *learning) {
	if r.marks.Load()&markLooked == 0 || r.marks.And(^uint32(markLooked))&markLooked == 0 {
		return
	}
	if was, known := r.estimate(Latency, now, l); known && lg < was {
		r.mean.Restart(x, now)
		r.peak.Restart(x, now)
		r.mark(markFresh)
	}
}
