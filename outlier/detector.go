package outlier

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
)

// Detector decides which endpoints of one pool are ejected. Make one with
// [NewDetector].
//
// Its methods need the owner's lock, except ProbeDue. What happens on the request path
// are the methods of [Host]. Methods that return changes return a slice that is valid
// until the next call.
type Detector struct {
	shared *shared
	random func() uint64

	// Read without the lock.
	nextProbe atomic.Int64
	patience  atomic.Int64

	config        Config
	rules         *rules
	hosts         []*Host // in the order of the list
	byID          map[string]*Host
	gone          map[string]*Host // left the list lately
	now           int64
	lastTick      int64 // the last sweep that looked at rates
	lastRecent    int64
	distressUntil int64
	panicking     bool
	started       bool // enough have been available once, see nextPanic
	queue         probeQueue
	counted       census

	// Of slow starts; see SetSlowStart.
	slow         *startRules       // nil: none
	left         map[string]*start // of those that left the list lately
	rampsAt      int64             // instant for which rampsMost is true
	rampsVersion uint64            // and version
	rampsMost    bool              // most are on their way back

	version   uint64
	threshold float64 // of the last success rate, in percent
	hasLimit  bool    // there is one
	changes   []Change
}

// ownerPart is what a Host holds that needs the owner's lock.
type ownerPart struct {
	id          string
	index       int
	member      bool
	forTimeouts bool // there was one in the run that ejected it
	hasRate     bool // lastRate counts
	standing    Standing
	reason      Reason
	start       *start // nil without slow starts

	backoff                         int // probes failed since it was last well
	multiplier                      int
	ejectedAt, sentence             int64 // Envoy, A50: out from, and for how long
	returnedAt, rampFrom, removedAt int64

	window     tally // where the present window began
	windowFrom int64
	lastRate   float64 // success rate of the last full window
	rateAt     int64
	recent     [2]tally // where the last two seconds began

	capped, unenforced, spared uint64
}

// NewDetector returns a Detector without members. random is the source of jitter and of
// what is enforced; nil means math/rand/v2's. now is the present instant; all instants
// are nanoseconds since one origin of the owner's choice, and not below 0.
func NewDetector(c Config, random func() uint64, now int64) (*Detector, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if random == nil {
		random = rand.Uint64
	}
	now = clamp(now)
	d := &Detector{version: 1, shared: &shared{}, random: random, config: c, rules: rulesOf(c),
		byID: map[string]*Host{}, gone: map[string]*Host{}, now: now, lastTick: now, lastRecent: now}
	d.shared.rules.Store(d.rules)
	d.planProbes()
	return d, nil
}

// SetConfig changes the rules. Ejections, their multipliers and the phase of the
// interval stay; an equal Config changes nothing. On an error, which names every problem, the
// previous rules stay. From A50 rules that eject nobody on, everybody is back.
func (d *Detector) SetConfig(c Config, now int64) ([]Change, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	d.begin(now)
	if c.Equal(d.config) {
		return nil, nil
	}
	before := d.rules
	d.config, d.rules = c, rulesOf(c)
	d.shared.rules.Store(d.rules)
	for _, h := range d.hosts {
		d.adopt(h, before)
	}
	if d.rules.mode != Soft {
		clear(d.gone) // state dies with the member
	} else {
		for _, h := range d.gone {
			d.adopt(h, before)
		}
	}
	d.version++
	return d.end(), nil
}

// adopt takes a host over from other rules.
func (d *Detector) adopt(h *Host, before *rules) {
	r := d.rules
	changed := before.mode != r.mode
	if changed || before.run != r.run || before.gatewayRun != r.gatewayRun || before.localRun != r.localRun {
		h.gatewayRun.Store(0)
		h.localRun.Store(0)
		d.setRun(h, h.run.Load()&(runRamp|runOut))
	}
	switch s := State(h.state.Load()); {
	case r.off():
		h.multiplier = 0
		if s == Ejected {
			d.bringBack(h, Reconfigured)
		}
	case !changed:
		return
	case r.mode == Soft && s == Ejected:
		h.backoff = 0
		d.permitFrom(h, d.now)
		d.setRun(h, runOut)
	case before.mode == Soft && s == Ejected:
		h.permit.Store(permitClosed)
		h.multiplier = max(h.multiplier, 1)
		h.ejectedAt, h.sentence = d.now, d.sentenceOf(h)
		d.setRun(h, 0)
	case s == Ramping:
		d.endRamp(h)
	}
	h.pending.Store(0)
	d.restartWindow(h)
}

// setRun starts a run of 0 with the flags, in the present epoch.
func (d *Detector) setRun(h *Host, flags uint64) {
	h.run.Store(uint64(h.Epoch())<<epochBit | flags)
}

// Act does what an Observe that returned true asked for, at instant now, and returns
// what changed.
func (d *Detector) Act(h *Host, now int64) []Change {
	d.begin(now)
	if h != nil && h.shared == d.shared {
		d.settle(h)
	}
	// Not end: in an outage this is called very often, and must not be O(n) unless
	// something changes.
	d.decidePanic()
	d.planProbes()
	return d.changes
}

// settle deals with what Observe noted.
func (d *Detector) settle(h *Host) {
	if h.pending.Load() == 0 || !h.member && d.rules.mode != Soft {
		return
	}
	noted := h.pending.Swap(0)
	if d.rules.mode == Soft {
		d.settleSoft(h, noted)
		return
	}
	// While it is out, runs go on and trigger nothing. Else the one that triggered starts
	// over, whether that ejects or not.
	if State(h.state.Load()) == Ejected {
		return
	}
	if noted&pendRun != 0 {
		d.setRun(h, 0)
		d.tryEject(h, ConsecutiveFailures, d.rules.enforceRun)
	}
	if noted&pendGateway != 0 {
		h.gatewayRun.Store(0)
		d.tryEject(h, ConsecutiveGatewayFailures, d.rules.enforceGatewayRun)
	}
	if noted&pendLocal != 0 {
		h.localRun.Store(0)
		d.tryEject(h, ConsecutiveLocalFailures, d.rules.enforceLocalRun)
	}
}

// settleSoft looks at the run again: what came since then may have ended it.
func (d *Detector) settleSoft(h *Host, noted uint32) {
	w := h.run.Load()
	if w&runOut != 0 {
		if noted&pendRecovered != 0 && uint32(w)&runCount >= d.rules.successes {
			d.bringBack(h, Recovered)
			return
		}
		d.settleProbe(h, noted, d.now)
		return
	}
	if noted&pendRun == 0 || !atLimit(w, d.rules) || State(h.state.Load()) == Ejected {
		return
	}
	spare := w&runLate != 0 && d.distressed() // while its run still counts
	d.setRun(h, w&runRamp)                    // a refusal, too, has to be earned again
	if spare {
		h.spared++
		return
	}
	if d.tryEject(h, ConsecutiveFailures, 100) {
		h.forTimeouts = w&runLate != 0
	}
}

// CheckPassed says that the member with that index passed a health check. In Envoy, and
// in Soft with ChecksReturn, it ends an ejection, unless the member's standing is
// Failing: a check that passed before enough of them did.
func (d *Detector) CheckPassed(i int, now int64) []Change {
	d.begin(now)
	if i >= 0 && i < len(d.hosts) && d.rules.checksReturn {
		h := d.hosts[i]
		d.settle(h)
		if State(h.state.Load()) == Ejected && h.standing != Failing {
			d.bringBack(h, CheckPassed)
		}
	}
	return d.end()
}

// begin starts a call at instant now.
func (d *Detector) begin(now int64) {
	d.advance(now)
	d.changes = d.changes[:0]
}

// end derives what depends on all hosts, and returns what changed.
func (d *Detector) end() []Change {
	d.distressed()
	d.decidePanic()
	d.planProbes()
	return d.changes
}

// move changes a host's state.
func (d *Detector) move(h *Host, to State, why Reason) {
	from := State(h.state.Load())
	if from == to {
		return
	}
	h.state.Store(uint32(to))
	if h.member {
		d.version++
		d.changes = append(d.changes, Change{Host: h, ID: h.id, Index: h.index, From: from, To: to, Reason: why})
	}
}

// uniform returns a random number from 0 to 1, 1 not included.
func (d *Detector) uniform() float64 { return float64(d.random()>>11) / (1 << 53) }

// Host returns that of the member with that index, nil if there is none.
func (d *Detector) Host(i int) *Host {
	if i < 0 || i >= len(d.hosts) {
		return nil
	}
	return d.hosts[i]
}

// Len returns the number of members.
func (d *Detector) Len() int { return len(d.hosts) }

// Version changes whenever Available may give another answer.
func (d *Detector) Version() uint64 { return d.version }

// Now returns the instant of the last call.
func (d *Detector) Now() int64 { return d.now }

// Config returns the configuration in force.
func (d *Detector) Config() Config { return d.config }

// Member is one endpoint of the list.
type Member struct {
	// ID is the endpoint's identity across updates: not empty, and once in a list.
	ID string
	// Standing is what the owner knows of it.
	Standing Standing
}

func checkMembers(list []Member) error {
	var p problems
	seen := make(map[string]bool, len(list))
	for i, m := range list {
		switch {
		case m.ID == "":
			p.add("member %d has no ID, want one", i)
		case seen[m.ID]:
			p.add("member %d has the ID %q, want it once", i, m.ID)
		case m.Standing > Drained:
			p.add("Standing of %q is %d, want 0 to %d", m.ID, m.Standing, Drained)
		}
		seen[m.ID] = true
	}
	if len(p) > 0 {
		return fmt.Errorf("outlier: the list is refused: %w", errors.Join(p...))
	}
	return nil
}
