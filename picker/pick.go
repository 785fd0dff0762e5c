package picker

import "github.com/evenkeel/evenkeel/ewma"

// Pick is one request on one endpoint, from the choice to Done. It is a small value
// and allocates nothing; keep it in a variable of its own and call its methods on
// that (a copy does not know of calls on the original). The zero Pick is done.
//
// The methods of one Pick must not be called concurrently; different Picks of one
// endpoint may. A Pick may outlive the snapshot that it came from, and its
// endpoint's membership.
type Pick struct {
	rec   *Record
	start int64
	epoch uint32
	// flags has the lane of the pool's total above its bits: with a field more, the compiler
	// would no longer keep a Pick in registers.
	flags uint16
}

const (
	flagLearn     = 1 << iota // the policy needs results
	flagAging                 // counted in the record's age
	flagStream                // counted in the record's streams
	flagUnsure                // of UnknownKind
	flagFirstByte             // FirstByte was called
	flagTaught                // Answered was called
	flagBad                   // with an outcome other than Success
	flagTotal                 // counted in the pool's total, in the lane above

	laneShift = 8
)

// begin counts a request and returns what Done will have to undo and to learn.
func (r *Record) begin(kind Kind, needs Need, now int64) (flags uint16) {
	if needs != 0 {
		flags = flagLearn
	}
	if kind == UnknownKind {
		flags |= flagUnsure
		r.mark(markMixed)
	}
	if needs&NeedAge != 0 && kind != Stream {
		r.age.Start(now)
		return flags | flagAging
	}
	r.picks.Add(1)
	if kind == Stream {
		flags |= flagStream
		r.streams.Add(1)
	}
	return flags
}

// Record returns the record of the picked endpoint, nil once the Pick is done.
func (p *Pick) Record() *Record { return p.rec }

// Start returns the instant of the choice.
func (p *Pick) Start() int64 { return p.start }

// Learns reports whether Done's result and the instants of FirstByte and Done will be
// used: false once done, and for policies that need nothing learnt. A caller may then
// spare itself the clock and pass 0; for an Overload, see [Registry.SetClock].
func (p *Pick) Learns() bool { return p.rec != nil && p.flags&flagLearn != 0 }

// FirstByte says that the first byte (HTTP: the headers; gRPC: the first message) of
// an answer that is so far a Success came at instant now. That is the latency
// sample, and the request stops ageing. Optional; only the first call counts. Do
// not call it for an answer whose status already says Failure or Overload.
func (p *Pick) FirstByte(now int64) {
	rec := p.rec
	if rec == nil || p.flags&flagFirstByte != 0 {
		return
	}
	p.stopAging()
	if !p.learns() {
		return
	}
	l := rec.shared.learning.Load()
	rec.answered(now, l)
	if l.needs&(NeedLatency|NeedEstimator) != 0 {
		rec.observe(p.elapsed(now), now, l)
	}
}

// elapsed is how long the request has taken, within the limit of gaps: more is a clock
// that stepped.
func (p *Pick) elapsed(now int64) int64 { return min(max(now-p.start, 0), int64(ewma.MaxGap)) }

// stopAging notes the first byte: from there on waiting is the caller's.
func (p *Pick) stopAging() {
	p.flags |= flagFirstByte
	if p.flags&flagAging != 0 {
		p.flags &^= flagAging
		p.rec.picks.Add(1) // before it leaves age: never uncounted
		p.rec.age.Done(p.start)
	}
}

// Answered says that an answer has begun at instant now whose outcome is r already, while
// the request is in flight until Done (an HTTP answer with a body): r teaches now what
// it would at Done. It is FirstByte, and more, for any outcome. Done then teaches only
// that an answer that began well ended badly. Only the first call counts.
func (p *Pick) Answered(now int64, r Result) {
	rec := p.rec
	if rec == nil || p.flags&flagTaught != 0 || r.Outcome == Unknown {
		return
	}
	p.hint(now, r)
	p.flags |= flagTaught
	p.takeReport(now, r)
	if r.Outcome != Success {
		p.flags |= flagBad
		if p.learns() {
			p.learn(now, r)
		}
		if p.flags&flagFirstByte == 0 {
			p.stopAging()
		}
		return
	}
	p.FirstByte(now)
	if p.learns() {
		if l := rec.shared.learning.Load(); l.needs&NeedSuccess != 0 {
			rec.succeed(now, l)
		}
	}
}

// NeedsInstant reports whether Done with r would use its instant. It does not for policies that need nothing learnt,
// and for an answer that has taught its outcome at the beginning and ended well: a caller may then spare itself the
// clock, and pass 0.
func (p *Pick) NeedsInstant(r Result) bool {
	switch {
	case p.rec == nil || p.flags&(flagLearn|flagTaught) == 0:
		return r.Outcome == Overload
	case p.flags&flagLearn == 0:
		return false
	}
	return p.flags&flagTaught == 0 || r.Outcome == Unknown || p.endedBadly(r.Outcome) || r.Load != (Load{}) ||
		p.rec.marks.Load()&markMixed != 0
}

// learns reports whether a result of this pick counts.
func (p *Pick) learns() bool {
	return p.flags&flagLearn != 0 && p.epoch == p.rec.epoch.Load()
}

// Done ends the request at instant now: it leaves the in-flight count, and r teaches
// the record what the [Outcome] says. A second call does nothing. A result from
// before the endpoint was last ejected teaches nothing.
func (p *Pick) Done(now int64, r Result) {
	rec := p.rec
	if rec == nil {
		return
	}
	p.takeReport(now, r)
	switch {
	case !p.learns():
		p.hint(now, r)
	case r.Outcome == Unknown:
		rec.stampDone(now)
	case p.flags&flagTaught == 0 || p.endedBadly(r.Outcome):
		p.learn(now, r)
	case rec.marks.Load()&markMixed != 0:
		rec.stampDone(now) // of an answer that has taught its outcome at the beginning
	}
	p.rec = nil
	if p.flags&flagAging != 0 {
		rec.age.Done(p.start)
		rec.aged.Add(1)
	} else {
		rec.dones.Add(1)
	}
	if p.flags&flagStream != 0 {
		rec.streams.Add(-1)
	}
	if p.flags&flagTotal != 0 {
		rec.shared.totals.Load().end(uint8(p.flags>>laneShift), rec.marks.Load()&markApart != 0)
	}
	if rec.marks.Load()&markLeaked != 0 && p.start < rec.leakBefore.Load() {
		rec.unleak()
	}
}

// takeReport learns from the report of a result.
func (p *Pick) takeReport(now int64, r Result) {
	if r.Load == (Load{}) || !p.learns() {
		return
	}
	elapsed := p.elapsed(now)
	answered := r.Outcome == Success && p.flags&flagStream == 0 && (p.flags&flagUnsure == 0 || elapsed <= int64(UnknownKindCutoff))
	p.rec.take(r.Load, elapsed, now, answered, p.rec.shared.learning.Load())
}

// unleak accounts for the end of a request that was no longer believed in flight.
func (r *Record) unleak() {
	for {
		n := r.leaked.Load()
		if n <= 0 || r.leaked.CompareAndSwap(n, n-1) {
			return
		}
	}
}

// endedBadly reports whether an answer that has taught its beginning ended in a way that
// teaches more.
func (p *Pick) endedBadly(o Outcome) bool {
	return p.flags&flagBad == 0 && o != Success && o != Canceled
}

// hint notes that the endpoint asks to be left alone, for a policy that learns nothing else. Those that
// learn say whether they want that too: see [NeedSuccess].
func (p *Pick) hint(now int64, r Result) {
	if r.Outcome == Overload && p.flags&(flagLearn|flagTaught) == 0 && p.epoch == p.rec.epoch.Load() {
		p.rec.avoid(now, r.RetryAfter)
	}
}

func (p *Pick) learn(now int64, r Result) {
	rec := p.rec
	l := rec.shared.learning.Load()
	elapsed := p.elapsed(now)
	sample := l.needs&(NeedLatency|NeedEstimator) != 0 && p.flags&(flagFirstByte|flagStream) == 0 &&
		(p.flags&flagUnsure == 0 || elapsed <= int64(UnknownKindCutoff))
	if rec.marks.Load()&^markLate != markAnswered {
		if r.Outcome != Canceled {
			rec.answered(now, l)
		}
		rec.stampDone(now)
	}
	if l.needs&NeedSuccess != 0 {
		switch r.Outcome {
		case Success:
			rec.success.Observe(true, now, l.success)
		case Failure, Unreached, Timeout:
			rec.success.Observe(false, now, l.success)
		case Overload:
			rec.avoid(now, r.RetryAfter)
		}
	}
	switch {
	case sample && r.Outcome == Success:
		rec.observe(elapsed, now, l)
		return // with its own view
	case sample && (r.Outcome == Timeout || r.Outcome == Canceled):
		rec.observeAtLeast(elapsed, now, l, r.Outcome == Timeout)
	}
	rec.setView(rec.see(now, l))
}

// succeed takes a success without a latency.
func (r *Record) succeed(now int64, l *learning) {
	clean := r.success.Clean()
	r.success.Observe(true, now, l.success)
	if !clean {
		r.setView(r.see(now, l))
	}
}

// answered notes that something came back: the end of probation. An endpoint that
// joined others which were known by then takes up its share slowly from here on; of those
// that a pool begins with, somebody has to be the first.
func (r *Record) answered(now int64, l *learning) {
	if r.marks.Load()&markAnswered != 0 || r.marks.Or(markAnswered)&markAnswered != 0 {
		return
	}
	if r.marks.Load()&markLate == 0 {
		return
	}
	if l.needs&NeedMeanPrior != 0 {
		r.mark(markFresh)
	}
	if l.needs&NeedRamp != 0 {
		r.startRamp(now)
	}
}

func (r *Record) stampDone(now int64) {
	if last := r.lastDone.Load(); now-last > lastDoneGrain {
		r.lastDone.Store(now)
	}
}

// observe takes a latency sample, and the view with it.
func (r *Record) observe(x, now int64, l *learning) {
	lg := ewma.LatencyLog2(x)
	target := r.shared.target.Load()
	if target == ewma.NoTarget || lg < target && !r.shared.settled.Load() {
		// At first others are taken for as good as the best answer, so that all of them are
		// tried: a slow first answer, as first answers are, would hide them.
		if r.shared.target.CompareAndSwap(target, lg) {
			if target == ewma.NoTarget {
				r.shared.firstSample.Store(now)
			}
			r.shared.median.Store(lg)
			r.shared.mean.Store(lg)
		}
	}
	r.startOver(lg, x, now, l)
	r.peak.ObserveLog2(lg, now, l.peak)
	lg = r.mean.ObserveLog2(lg, x, now, l.mean, target)
	peak := r.peak.Above(lg, now, l.peak)
	r.setView(newView(max(lg, peak-peakExcess), r.failurePenalty(now, l), peak)) // as in estimate
	if l.needs&NeedEstimator != 0 {
		r.observeOwn(x, now)
	}
}

// observeAtLeast takes elapsed as a lower bound of the latency. Of an endpoint that
// has no sample it says something only if it exceeds what is assumed of a cold
// one: otherwise a caller that leaves at once would make it look fast. Where nothing
// is assumed either, certain says whether the bound is taken for a sample.
func (r *Record) observeAtLeast(elapsed, now int64, l *learning, certain bool) {
	lg, known := r.estimate(PeakHold, now, l)
	if !known {
		prior, ok := r.prior(now, l)
		if !ok && !certain || ok && ewma.LatencyLog2(elapsed) <= prior {
			return
		}
		r.observe(elapsed, now, l)
		return
	}
	if ewma.LatencyLog2(elapsed) > lg {
		r.peak.Observe(elapsed, now, l.peak)
	}
	r.mean.ObserveAtLeast(elapsed, now, l.mean, r.shared.target.Load())
	if l.needs&NeedEstimator != 0 {
		if lg, known := r.ownLog2(now); !known || ewma.LatencyLog2(elapsed) > lg {
			r.observeOwn(elapsed, now)
		}
	}
}
