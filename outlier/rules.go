package outlier

import "time"

// Defaults. Those of Envoy and gRFC A50 are their documents'; Soft's were found by
// simulating a bad deploy on three of ten endpoints, with 1, 20 and 100 clients.
const (
	defaultInterval     = 10 * time.Second
	defaultBase         = 30 * time.Second
	defaultMax          = 300 * time.Second
	defaultRun          = 5
	defaultSoftCap      = 100 // panic is the bound
	defaultSoftCapAlone = 50  // without panic
	defaultCap          = 10
	defaultStdevFactor  = 1.9
	defaultPanic        = 50
	defaultLeave        = 10 // points above the threshold

	defaultSoftVolume   = 20
	defaultSoftHosts    = 3
	defaultMaxWindow    = time.Minute
	defaultBackoff      = 500 * time.Millisecond
	defaultMaxBackoff   = 8 * time.Second
	defaultJitter       = 0.2
	defaultProbeTimeout = 30 * time.Second
	defaultSuccesses    = 3
	defaultRemember     = time.Minute
	defaultRamp         = 10 * time.Second
	defaultFloor        = 10

	// rampRun is how many failures in a row eject an endpoint that has just come back.
	rampRun = 2
	// maxNumber bounds counts of a Config to what the packed run of a Host can hold.
	maxNumber = runCount
)

// rules is a Config with its defaults filled in. Immutable.
type rules struct {
	mode     Mode
	effects  effects
	interval int64
	cap      float64 // percent
	oneAtAll bool

	run, gatewayRun, localRun uint32 // 0 for off

	// Soft.
	noRate                    bool
	volume, minHosts          int
	maxWindow                 int64
	backoff, maxBackoff       int64
	jitter                    float64
	probeTimeout              int64
	successes                 uint32
	remember                  int64
	rampWindow                int64 // 0 for none
	rampAggression, rampFloor float64

	// Envoy, A50.
	base, max, ejectJitter                         int64
	enforceRun, enforceGatewayRun, enforceLocalRun float64
	split                                          bool
	rate                                           *rateRules
	percentage                                     *percentageRules

	checksReturn bool
	panic        panicRules
}

type rateRules struct {
	factor, enforce, enforceLocal float64
	hosts, volume                 int
}

type percentageRules struct {
	threshold, enforce, enforceLocal float64
	hosts, volume                    int
}

type panicRules struct {
	threshold, leave float64
	usual            bool // leave is the default
	normalized       bool // Envoy's
	failFast         bool
}

// rulesOf fills in the defaults of a valid Config.
func rulesOf(c Config) *rules {
	r := &rules{
		mode:     c.Mode,
		effects:  effectsOf(c.Mode, c.Envoy.SplitLocalOrigin),
		interval: nanos(c.Interval, defaultInterval),
		cap:      c.MaxEjectionPercent.or(defaultCap),
		oneAtAll: c.AtLeastOne && c.Mode != A50,
		base:     nanos(c.BaseEjectionTime, defaultBase),
		panic: panicRules{
			threshold: c.Panic.Threshold.or(defaultPanic),
			failFast:  c.Panic.FailFast,
		},
	}
	r.max = max(nanos(c.MaxEjectionTime, defaultMax), r.base)
	switch c.Mode {
	case Envoy:
		r.envoy(c)
	case A50:
		r.a50(c)
	case NoEjection:
		r.panic.leaveAt(c.Panic.Leave)
	default:
		r.soft(c)
	}
	return r
}

func (r *rules) soft(c Config) {
	s := c.Soft
	r.cap = c.MaxEjectionPercent.or(defaultSoftCap)
	if r.panic.threshold == 0 {
		r.cap = c.MaxEjectionPercent.or(defaultSoftCapAlone)
	}
	r.run = runOf(s.ConsecutiveFailures)
	r.noRate = s.NoRate
	r.volume, r.minHosts = orElse(s.RequestVolume, defaultSoftVolume), orElse(s.MinHosts, defaultSoftHosts)
	r.maxWindow = max(nanos(s.MaxWindow, defaultMaxWindow), r.interval)
	r.backoff = nanos(s.ProbeBackoff, defaultBackoff)
	r.maxBackoff = max(nanos(s.MaxProbeBackoff, defaultMaxBackoff), r.backoff)
	r.jitter = s.ProbeJitter
	if r.jitter == 0 {
		r.jitter = defaultJitter
	}
	r.probeTimeout = nanos(s.ProbeTimeout, defaultProbeTimeout)
	r.successes = uint32(orElse(s.ProbeSuccesses, defaultSuccesses))
	r.remember = nanos(s.Remember, defaultRemember)
	r.checksReturn = s.ChecksReturn
	if c.Ramp.Window >= 0 {
		r.rampWindow = nanos(c.Ramp.Window, defaultRamp)
	}
	r.rampAggression = c.Ramp.Aggression
	r.rampFloor = c.Ramp.Floor.or(defaultFloor) / 100
	r.panic.leaveAt(c.Panic.Leave)
}

func (r *rules) envoy(c Config) {
	e := c.Envoy
	r.run, r.gatewayRun, r.localRun = runOf(e.Consecutive5xx), runOf(e.ConsecutiveGateway), runOf(e.ConsecutiveLocal)
	r.enforceRun = e.EnforceConsecutive5xx.or(100)
	r.enforceGatewayRun = e.EnforceConsecutiveGateway.or(0)
	r.enforceLocalRun = e.EnforceConsecutiveLocal.or(100)
	r.split = e.SplitLocalOrigin
	r.rate = e.SuccessRate.rules(e.EnforceLocalSuccessRate.or(100))
	r.percentage = e.FailurePercentage.rules(0, e.EnforceLocalFailurePercentage.or(0))
	r.ejectJitter = int64(c.MaxEjectionJitter)
	r.checksReturn = !e.IgnoreChecks
	r.panic.leave, r.panic.normalized = r.panic.threshold, true
}

func (r *rules) a50(c Config) {
	if c.A50.SuccessRate != nil {
		r.rate = c.A50.SuccessRate.rules(0)
	}
	if c.A50.FailurePercentage != nil {
		r.percentage = c.A50.FailurePercentage.rules(100, 0)
	}
	r.panic.threshold = c.Panic.Threshold.or(0)
	r.panic.leaveAt(c.Panic.Leave)
}

func (c SuccessRate) rules(enforceLocal float64) *rateRules {
	factor := c.StdevFactor
	if factor == 0 {
		factor = defaultStdevFactor
	}
	return &rateRules{factor, c.Enforce.or(100), enforceLocal, orElse(c.MinHosts, 5), orElse(c.RequestVolume, 100)}
}

func (c FailurePercentage) rules(enforce, enforceLocal float64) *percentageRules {
	return &percentageRules{c.Threshold.or(85), c.Enforce.or(enforce), enforceLocal,
		orElse(c.MinHosts, 5), orElse(c.RequestVolume, 50)}
}

// off reports whether the rules can eject nobody.
func (r *rules) off() bool {
	return r.mode == NoEjection || r.mode == A50 && r.rate == nil && r.percentage == nil
}

func runOf(n int) uint32 {
	if n == Off {
		return 0
	}
	return uint32(orElse(n, defaultRun))
}

// nanos and orElse return the value, or the default if it is 0.
func nanos(d, absent time.Duration) int64 {
	if d == 0 {
		return int64(absent)
	}
	return int64(d)
}

func orElse(n, absent int) int {
	if n == 0 {
		return absent
	}
	return n
}
