package evenkeel

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/evenkeel/evenkeel/outlier"
)

// SlowStart has endpoints take up their share by and by, each from its own return: when it
// joins a pool that has others already (not when the pool gets its first list), when it passes its checks
// again, when its ejection ends in the mode Soft, when it is no longer drained nor of weight 0, and when it is back after
// ten seconds without a connection or out of the list: what is repaired sooner was a connection or a list, and
// what takes longer is commonly a process that was started anew. The order of the list, weights, attributes
// and handles start nothing; in the modes Envoy and A50 nor does the end of an ejection, as it does not there.
//
// After elapsed time t the endpoint's share is max(Floor, (t/Window)^(1/Aggression)) of what it would get, moved at each
// [Pool.Sweep]; the form of [outlier.Config].Ramp does not count then. A single endpoint has its full share,
// and so have all while more than half of those that may be picked are on their way back, by this or by
// that. How policies keep to a share is said at [picker.Record.SetShare]. It needs [Pool.Sweep], without which a
// share may stay as it is. The zero SlowStart has the defaults.
type SlowStart struct {
	// Window is how long it takes to the full share, 0 to 24 h. 0 means 10 s, as an ejected endpoint's ramp has
	// (Envoy has no default): ten sweeps, each of which adds a tenth, the default floor.
	Window time.Duration
	// Aggression above 1 gives more early, below 1 less. 0 means 1, a straight line.
	Aggression float64
	// Floor is the share to begin with, in percent. Absent means 10.
	Floor outlier.Percent
}

// maxWindow is as long as anybody warms up. It keeps sums of instants from overflowing.
const maxWindow = 24 * time.Hour

// Validate reports every problem of the configuration, joined; nil if there is none.
func (s SlowStart) Validate() error {
	var problems []error
	if s.Window < 0 || s.Window > maxWindow {
		problems = append(problems, fmt.Errorf("evenkeel: SlowStart.Window is %v, want 0 to %v", s.Window, maxWindow))
	}
	// Written so that NaN is refused.
	if !(s.Aggression >= 0 && s.Aggression <= math.MaxFloat64) {
		problems = append(problems, fmt.Errorf("evenkeel: SlowStart.Aggression is %v, want a finite number above 0, or 0 for 1", s.Aggression))
	}
	if f, _ := s.Floor.Value(); !(f >= 0 && f <= 100) {
		problems = append(problems, fmt.Errorf("evenkeel: SlowStart.Floor is %v, want 0 to 100", f))
	}
	return errors.Join(problems...)
}

// rampSteps is in how many steps at least a share grows.
const rampSteps = 10

// rampStep returns how often shares have to be moved while somebody is on the way back.
func (c Config) rampStep() time.Duration {
	if c.SlowStart == nil || c.SlowStart.Window == 0 || c.SlowStart.Window >= rampSteps/2*sweepEvery {
		return sweepEvery
	}
	return max(c.SlowStart.Window/rampSteps, sweepSoon)
}

// startSlowly has the detector know of slow starts, before it knows of new members. mu is held.
func (p *Pool[T]) startSlowly(now int64) {
	if s := p.config.SlowStart; s != nil {
		r := outlier.Ramp(*s)
		p.detector.SetSlowStart(&r, p.steady(now))
	} else {
		p.detector.SetSlowStart(nil, p.steady(now))
	}
}

// share gives endpoints that are on their way back their present share of the choices. While there is a limit,
// and no slow start is asked for, that is all of it: the others have no room for what these do not take. mu is held.
func (p *Pool[T]) share(now int64) {
	if !p.ramping {
		return
	}
	p.ramping = false
	_, limited := p.limiter.Limit()
	full := limited && p.config.SlowStart == nil
	for i := range p.members.Len() {
		f := p.detector.RampFactor(i, now)
		if full {
			f = 1
		}
		p.members.Record(i).SetShare(f)
		p.ramping = p.ramping || p.detector.Ramps(i, now)
	}
}

func sameSlowStart(a, b *SlowStart) bool { return a == b || a != nil && b != nil && *a == *b }
