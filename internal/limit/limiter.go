package limit

import (
	"math"
	"sync/atomic"
)

// Limiter is one limit on the requests in flight of one pool and client. It does not exist
// until distress: without, Acquire and Release cost one load each and write nothing.
// See the package's documentation for when it appears and how it moves.
//
// Acquire, Release, Observe and the readers may be called by any number of goroutines;
// Sweep and SetConfig only by one at a time.
type Limiter struct {
	// Read by every request, written when the limit appears, moves or goes.
	state   atomic.Int32
	current atomic.Pointer[Overload] // the limit, as the error that it gives; nil while off
	tokens  tokens
	_       [lineBytes]byte

	// Guarded by the owner.
	aimd    aimd
	refused int64 // as of the last sweep
	drift   int64 // of the tokens, as of the last sweep
	ended   int64 // requests that have ended and are in no tally yet; below 0: the other way round
	byEnds  bool  // the owner calls Ended
	untold  bool  // some of what has ended since the last sweep did so while it was disabled
}

// The states of a Limiter.
const (
	off int32 = iota
	on
	disabled
)

// New returns a Limiter, or every problem of the configuration.
func New(c Config) (*Limiter, error) {
	l := &Limiter{tokens: newTokens()}
	if err := l.SetConfig(c); err != nil {
		return nil, err
	}
	return l, nil
}

// SetConfig changes the configuration from here on. A limit that exists stays, within its
// new bounds. A Config that is not valid changes nothing.
func (l *Limiter) SetConfig(c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	l.aimd.floor, l.aimd.ceiling = c.bounds()
	switch {
	case c.Disabled:
		l.aimd = aimd{floor: l.aimd.floor, ceiling: l.aimd.ceiling}
		l.untold = true
		l.state.Store(disabled)
		l.current.Store(nil)
	case l.aimd.on:
		l.aimd.limit = l.aimd.clamp(l.aimd.limit) // the tokens follow with the next sweep
	default:
		l.state.Store(off)
	}
	return nil
}

// On reports whether there is a limit at this moment. While there is none, Acquire would be true, and Release
// do nothing: who asks first can spare itself the call.
func (l *Limiter) On() bool { return l.state.Load() == on }

// Acquire asks to begin a request and reports whether it may, which it always may while
// there is no limit. Each true must be followed by one [Limiter.Release] when the
// request has ended. Streams and upgrades are not counted: do not call it for them. A
// refusal says nothing about any endpoint and must not be booked against one.
func (l *Limiter) Acquire() bool { return l.state.Load() != on || l.acquire() }

func (l *Limiter) acquire() bool {
	if l.tokens.take() {
		return true
	}
	l.tokens.own().refused.Add(1)
	return false
}

// Release ends a request that Acquire let begin, whether or not there was a limit then.
func (l *Limiter) Release() {
	if l.state.Load() == on {
		l.tokens.give()
	}
}

// AcquireBeyond begins a request that Acquire has refused and that is made all the same, to an endpoint
// that is ejected or has just come back: it takes nothing from the others. It must be followed by one
// [Limiter.ReleaseBeyond].
func (l *Limiter) AcquireBeyond() { l.tokens.own().beyond.Add(1) }

// ReleaseBeyond ends a request that AcquireBeyond began.
func (l *Limiter) ReleaseBeyond() { l.tokens.own().beyond.Add(-1) }

// Beyond returns the number of requests in flight that AcquireBeyond began.
func (l *Limiter) Beyond() (n int64) {
	for i := range l.tokens.stripes {
		n += l.tokens.stripes[i].beyond.Load()
	}
	return max(n, 0)
}

// Limit returns the current limit; ok is false while there is none.
func (l *Limiter) Limit() (n int, ok bool) {
	if e := l.current.Load(); e != nil {
		return e.Limit, true
	}
	return 0, false
}

// Refused returns how often Acquire has returned false.
func (l *Limiter) Refused() (n uint64) {
	for i := range l.tokens.stripes {
		n += uint64(l.tokens.stripes[i].refused.Load())
	}
	return n
}

// Err returns the error for a request that was refused: an [*Overload], which is
// [ErrOverloaded]. It allocates nothing.
func (l *Limiter) Err() error {
	if e := l.current.Load(); e != nil {
		return e
	}
	return ErrOverloaded // refused just before the limit went
}

// Sweep judges what was observed since the last call and moves the limit accordingly, at
// instant now and with that many requests in flight in the pool, streams and upgrades not
// included, those of AcquireBeyond included. It returns when to call it again,
// math.MaxInt64 if never. Sooner does no harm; later makes the limit slow. A sweep costs a
// few loads for each processor.
func (l *Limiter) Sweep(now, inFlight int64) (next int64) {
	if l.state.Load() == disabled {
		return math.MaxInt64
	}
	inFlight = max(inFlight-l.Beyond(), 0)
	refused := int64(l.Refused())
	l.aimd.advance(l.collect(), inFlight, refused-l.refused, now)
	l.refused = refused
	if !l.aimd.on {
		if l.state.Swap(off) == on {
			l.current.Store(nil)
		}
		return now + windowLeast
	}
	n := int64(l.aimd.limit)
	old := l.current.Load()
	if old == nil || int64(old.Limit) != n {
		l.current.Store(&Overload{Limit: int(n)})
	}
	if old == nil {
		l.tokens.empty()
		l.tokens.adjust(n - inFlight)
		l.drift = 0
		l.state.Store(on)
	} else {
		l.tokens.adjust(n - int64(old.Limit))
		l.resync(n - inFlight)
	}
	return now + stepEvery
}

// resync corrects the tokens towards what the owner's count of requests says: those that
// began or ended while the limit appeared were counted on one side only, and a Release
// may be missing or one too many. A difference counts when two sweeps agree on its
// sign, since the count takes a moment in which requests come and go.
func (l *Limiter) resync(want int64) {
	l.tokens.settle()
	drift := want - l.tokens.left()
	by := int64(0)
	switch last := l.drift; {
	case drift > 0 && last > 0:
		by = min(drift, last)
	case drift < 0 && last < 0:
		by = max(drift, last)
	}
	l.tokens.adjust(by)
	l.drift = drift - by
}
