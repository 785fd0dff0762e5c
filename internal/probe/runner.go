package probe

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/health"
)

// Prober makes one check. It is called concurrently, for different addresses as a rule.
//
// One that keeps connections may have two more methods: Left(addr string), which the Runner calls
// when no endpoint has that address any more, and Close(), which it calls when the prober is no longer
// used and none of its checks is running; both without locks.
type Prober interface {
	// Probe checks the endpoint at addr, a host and a port, and returns the result with an
	// account of it for people ("HTTP 503"). It returns soon after ctx is done; what it returns then
	// counts as a failure if ctx's deadline has passed, and for nothing if ctx was cancelled.
	Probe(ctx context.Context, addr string) (r health.Result, detail string)
}

// Endpoint is one that is to be checked.
type Endpoint struct {
	// ID is the pool's.
	ID string
	// Addr is where to check it: a host and a port. The Prober is given it as it is. It is not
	// needed for an endpoint that is only ever told of.
	Addr string
}

// Options are what a Runner is made of.
type Options struct {
	// Config says when endpoints are checked. Of what is sent the Prober knows.
	Config evenkeel.HealthConfig
	// Prober makes the checks. nil means that nobody is checked: there are endpoints that are
	// told of, and the others stay unchecked.
	Prober Prober
	// Out is told what the checks have come to: for [evenkeel.Pool.SetStates]. It is called by one
	// goroutine at a time, without locks of the Runner's: its own, or one that calls Update,
	// SetConfig or Tell. So these must not be called with a lock held that Out takes. It may call
	// all methods. nil means nobody.
	Out func([]evenkeel.StateChange)
	// Rand spreads the checks; it is called under a lock. nil means math/rand/v2's.
	Rand func() uint64
}

// Runner has the endpoints of one pool checked. Make one with [NewRunner].
type Runner struct {
	// Set at construction.
	start  time.Time
	out    func([]evenkeel.StateChange)
	random func() uint64
	ctx    context.Context // done when the Runner is stopped
	cancel context.CancelFunc
	wake   chan struct{} // holds one

	used atomic.Bool // there was a request since this was last read
	idle atomic.Bool // the next request is to wake the loop

	checkers sync.WaitGroup // one for each running check; only the loop adds

	mu      sync.Mutex
	stopped bool
	config  health.Config // with defaults
	checks  *health.Checks
	members map[string]*member // by ID
	round   uint64             // of updates
	prober  *shared            // nil: nobody is checked
	running int                // checks
	waiting int                // members that were said to be Unchecked
	paced   int64              // no check begins before this instant

	usedRead int64 // instant at which used was last read
	usedAt   int64 // instant of the last request that is known

	outbox  []evenkeel.StateChange
	later   []func() // to be called without mu
	telling bool     // somebody empties the two
}

// member is one endpoint. It is guarded by the Runner's mu.
type member struct {
	addr    string
	waiting bool    // it was said to be Unchecked
	flight  *flight // the check that is being made; nil: none whose result counts
	seen    uint64  // the last round that listed it
}

// land breaks off the check that is being made.
func (m *member) land() {
	if m.flight != nil {
		m.flight.cancel()
		m.flight = nil
	}
}

// NewRunner returns a Runner without endpoints, which has to be stopped, or every problem of the
// configuration.
func NewRunner(o Options) (*Runner, error) {
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	r := &Runner{start: time.Now(), out: o.Out, random: o.Rand, config: timing(o.Config).WithDefaults(),
		wake: make(chan struct{}, 1), members: map[string]*member{}}
	if r.out == nil {
		r.out = func([]evenkeel.StateChange) {}
	}
	if r.random == nil {
		r.random = rand.Uint64
	}
	var err error
	if r.checks, err = health.NewChecks(timing(o.Config), r.random); err != nil {
		return nil, err
	}
	if o.Prober != nil {
		r.prober = &shared{Prober: o.Prober}
	}
	r.idle.Store(true)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	go r.loop()
	return r, nil
}

// timing is the part of c that package health knows.
func timing(c evenkeel.HealthConfig) health.Config {
	return health.Config{Interval: c.Interval, Timeout: c.Timeout, Jitter: c.Jitter, Rise: c.Rise, Fall: c.Fall,
		UnexpectedAtOnce: c.UnexpectedAtOnce, NoTraffic: c.NoTraffic, UseUnchecked: c.UseUnchecked}
}

// now is nanoseconds since the Runner's start.
func (r *Runner) now() int64 { return int64(time.Since(r.start)) }

// SetConfig changes when endpoints are checked, and by whom: p takes the place of the Prober from
// the next check on, nil leaves it. Endpoints and what is known of them stay. On an error, which
// names every problem, nothing changes.
func (r *Runner) SetConfig(c evenkeel.HealthConfig, p Prober) error {
	if err := c.Validate(); err != nil {
		return err
	}
	r.mu.Lock()
	if r.stopped {
		r.mu.Unlock()
		return nil
	}
	r.config = timing(c).WithDefaults()
	now := r.now()
	r.readUse(now)
	_ = r.checks.SetConfig(timing(c), now) // which was validated
	if p != nil {
		if r.prober != nil {
			r.retire(r.prober)
		}
		r.prober = &shared{Prober: p}
	}
	r.letGo()
	r.flush()
	r.nudge()
	return nil
}

// Tell sets an endpoint's verdict by what it said of itself, as gRPC's Watch does: no check is made
// of it any more while it is listed, and thresholds do not apply. An ID that is not listed is ignored.
func (r *Runner) Tell(id string, healthy bool, detail string) {
	r.mu.Lock()
	m := r.members[id]
	if m == nil || r.stopped {
		r.mu.Unlock()
		return
	}
	m.land()
	_, changed := r.checks.Tell(id, healthy, detail)
	r.judge(id, m, healthy, changed)
	r.flush()
}

// Details returns the account of the last result of each endpoint, or that there is none, by its ID.
func (r *Runner) Details() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[string]string, len(r.members))
	for id := range r.members {
		s, detail, _ := r.checks.State(id)
		if s.Status() == health.Unchecked {
			detail = "the first check has not ended"
		}
		all[id] = detail
	}
	return all
}
