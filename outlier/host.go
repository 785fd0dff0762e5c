package outlier

import "sync/atomic"

// Host is what is known of one endpoint. A [Detector] makes it and gives the same one
// back for as long as the endpoint is in the list (in the mode Soft, and a while
// longer), so that a request may keep the pointer until it ends.
//
// All exported methods are safe for concurrent use, take no lock and allocate nothing.
type Host struct {
	shared *shared // set at construction

	// run holds, from the top: the epoch (32 bits), flags, and how many results of one
	// kind came in a row. They share a word so that a result of an earlier epoch can
	// never be counted in a later one, and a failure of before the ejection never as
	// one of after.
	run     atomic.Uint64
	answers atomic.Uint64 // ever: successes + failures<<32; see since
	locals  atomic.Uint64 // the same for Soft's timeouts and for Envoy's local origin
	// permit says when a probe may go out; see probe.go.
	permit      atomic.Int64
	lastFailure atomic.Int64  // instant
	pending     atomic.Uint32 // what the owner has yet to deal with
	state       atomic.Uint32 // written by the owner

	gatewayRun atomic.Uint32 // Envoy
	localRun   atomic.Uint32 // Envoy

	// Up to here it is one cache line, and all of it a multiple of two, which processors
	// fetch together: results of different endpoints write no common line.
	ownerPart
}

// shared is what all hosts of a Detector read.
type shared struct {
	rules    atomic.Pointer[rules]
	distress atomic.Bool // so many endpoints fail at once that timeouts are not booked
	_        [48]byte    // the two are read on every result, and rarely written
}

// Layout of Host.run below the epoch.
const (
	runCount = 1<<29 - 1
	runRamp  = 1 << 29 // the endpoint has just come back
	runLate  = 1 << 30 // there is a timeout among the failures
	runOut   = 1 << 31 // ejected, in Soft: successes are counted
	epochBit = 32
)

// What the owner has yet to deal with.
const (
	pendRun uint32 = 1 << iota
	pendGateway
	pendLocal
	pendRecovered
	pendProbeGood
	pendProbeBad
	pendProbeBack
	pendProbeLater
)

// Token belongs to one request, from its choice to its end. It is a small value; the
// zero Token is of the first epoch.
type Token struct {
	// upper and lower are the halves of a probe's permit; else 0. Every request carries a Token,
	// which takes 12 bytes so, and 16 with one word for both.
	upper, lower uint32
	epoch        uint32
}

// holding returns the token of a request that has taken a permit.
func holding(permit int64, epoch uint32) Token {
	return Token{upper: uint32(uint64(permit) >> 32), lower: uint32(permit), epoch: epoch}
}

// held returns the permit that the request has taken, 0 if none.
func (t Token) held() int64 { return int64(uint64(t.upper)<<32 | uint64(t.lower)) }

// Probe reports whether the request is the one that was let through to an ejected
// endpoint.
func (t Token) Probe() bool { return t.held() < 0 }

// Epoch returns the epoch in which the request began.
func (t Token) Epoch() uint32 { return t.epoch }

// Spent returns the token of a request that has had its say as a probe: a second event is as
// any other request's.
func (t Token) Spent() Token { return Token{epoch: t.epoch} }

// Token returns a token for a request that is being sent to the endpoint.
func (h *Host) Token() Token { return Token{epoch: h.Epoch()} }

// Epoch returns how often the endpoint was ejected. What requests of another epoch
// bring teaches nothing.
func (h *Host) Epoch() uint32 { return uint32(h.run.Load() >> epochBit) }

// State returns the endpoint's state at instant now.
func (h *Host) State(now int64) State {
	s := State(h.state.Load())
	if s == Ejected && h.shared.rules.Load().mode == Soft {
		if p := h.permit.Load(); p <= now || p == permitDeciding {
			return Probing
		}
	}
	return s
}

// Observe books what a request with that token brought, at instant now. If it
// returns true, the owner has to call [Detector.Act] for the host: the endpoint may have to
// be ejected, or to come back. If that is left out, the next Sweep does it.
//
// Call it once for each request. Events of requests from before the last ejection, and
// those that are no Event, do nothing.
func (h *Host) Observe(e Event, t Token, now int64) (act bool) {
	if e == Succeeded && h.Succeed(t) {
		return false
	}
	return h.observeOther(e, t, now)
}

// Succeed books a success, as Observe does, if that is all there is to do: nearly every result is that of an
// endpoint without failures to forget. It is a success in every mode. If it returns false, it has done nothing,
// and Observe is to be called.
func (h *Host) Succeed(t Token) bool {
	if w := h.run.Load(); w&^(runRamp|runLate) != uint64(t.epoch)<<epochBit ||
		t.upper|t.lower|h.gatewayRun.Load() != 0 {
		return false
	}
	h.answers.Add(oneGood)
	return true
}

func (h *Host) observeOther(e Event, t Token, now int64) (act bool) {
	if e >= events {
		return false
	}
	r := h.shared.rules.Load()
	f := &r.effects[e]
	if t.held() != 0 {
		return h.observeProbe(f, t, now, r)
	}
	return h.observe(f, t.epoch, now, r)
}

func (h *Host) observe(f *effect, epoch uint32, now int64, r *rules) (act bool) {
	if f.answers|f.locals == 0 {
		return false
	}
	w := h.run.Load()
	if uint32(w>>epochBit) != epoch {
		return false
	}
	if f.flags&late != 0 && w&runOut == 0 && h.shared.distress.Load() {
		h.locals.Add(f.locals) // for whoever asks how many fail; no run
		h.lastFailure.Store(now)
		return false
	}
	if f.flags&(runGood|runBad) != 0 {
		var current bool
		if w, current = h.step(f.flags, epoch); !current {
			return false
		}
	}
	if w&runOut != 0 {
		return f.flags&runGood != 0 && uint32(w)&runCount >= r.successes && h.flag(pendRecovered)
	}
	if f.answers != 0 {
		h.answers.Add(f.answers)
	}
	if f.locals != 0 {
		h.locals.Add(f.locals)
	}
	if f.flags&runBad != 0 {
		h.lastFailure.Store(now)
	}
	if r.mode == Soft {
		return f.flags&runBad != 0 && atLimit(w, r) && h.flag(pendRun)
	}
	return h.countRuns(f.flags, w, r)
}

// step adds a result to the run of the epoch and returns the new word; current is
// false if the epoch is over. A success without failures before it writes nothing.
func (h *Host) step(flags effectFlags, epoch uint32) (w uint64, current bool) {
	good := flags&runGood != 0
	for {
		w = h.run.Load()
		if uint32(w>>epochBit) != epoch {
			return 0, false
		}
		next := w &^ (runCount | runLate)
		if good == (w&runOut != 0) { // of the kind that is counted
			next = w
			if w&runCount != runCount {
				next++
			}
			if flags&late != 0 {
				next |= runLate
			}
		}
		if next == w || h.run.CompareAndSwap(w, next) {
			return next, true
		}
	}
}

// atLimit reports whether a run of failures is long enough for Soft. It is not "just
// reached it", so that a limit that was lowered meanwhile counts.
func atLimit(w uint64, r *rules) bool {
	limit := r.run
	if w&runRamp != 0 {
		limit = min(limit, rampRun)
	}
	return limit != 0 && uint32(w)&runCount >= limit
}

// countRuns does Envoy's three runs: reaching a limit triggers, being above it does not,
// as its runs go on while an endpoint is out.
func (h *Host) countRuns(flags effectFlags, w uint64, r *rules) (act bool) {
	if r.mode != Envoy {
		return false
	}
	if flags&runBad != 0 && uint32(w)&runCount == r.run {
		act = h.flag(pendRun)
	}
	switch {
	case flags&gateway != 0:
		if h.gatewayRun.Add(1) == r.gatewayRun {
			act = h.flag(pendGateway) || act
		}
	case flags&(runGood|runBad) != 0:
		reset(&h.gatewayRun)
	}
	switch {
	case flags&locBad != 0:
		if h.localRun.Add(1) == r.localRun {
			act = h.flag(pendLocal) || act
		}
	case flags&locGood != 0:
		reset(&h.localRun)
	}
	return act
}

func reset(run *atomic.Uint32) {
	if run.Load() != 0 {
		run.Store(0)
	}
}

// flag leaves a note for the owner and reports whether it is news.
func (h *Host) flag(bit uint32) bool { return h.pending.Or(bit)&bit == 0 }

// tally is a pair of cumulative counts. What came between two readings is the difference of
// the words, which is right whatever overflowed meanwhile, as long as it is below
// 2^32 of either. So no reader ever resets a counter, and every result is in exactly
// one interval.
type tally struct{ answers, locals uint64 }

func (h *Host) tally() tally { return tally{h.answers.Load(), h.locals.Load()} }

// parts returns the successes and failures between two readings of one count.
func parts(now, before uint64) (good, bad uint64) {
	d := now - before
	return d & (1<<32 - 1), d >> 32
}
