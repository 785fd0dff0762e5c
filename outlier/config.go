package outlier

import "time"

// Mode says by whose rules endpoints are ejected and brought back.
type Mode uint8

const (
	// Soft is this package's own way and the default: five failures in a row or a
	// failure rate that the pool's median does not share eject, single real requests
	// find out when an endpoint is well again, and a ramp brings it back.
	Soft Mode = iota
	// Envoy is Envoy's outlier detection, as its documentation has it.
	Envoy
	// A50 is gRFC A50, which gRPC's outlier_detection policy implements.
	A50
	// NoEjection ejects nobody for how requests end. Standings and panic go on.
	NoEjection
)

// String returns the mode's name.
func (m Mode) String() string {
	switch m {
	case Soft:
		return "soft"
	case Envoy:
		return "envoy"
	case A50:
		return "a50"
	case NoEjection:
		return "off"
	}
	return "invalid"
}

// Off is the number of failures in a row that switches that detector off.
const Off = -1

// Config says who is ejected and for how long. The zero Config is [Soft] with the
// defaults named at the fields. Fields of a mode that is not the chosen one are
// checked and otherwise ignored. What its pointers point to must not be changed later.
type Config struct {
	// Mode chooses the rules.
	Mode Mode
	// Interval is the time between two looks at rates, and in the modes Envoy and A50
	// between any two sweeps that count. 0 means 10 s, the default of Envoy and gRFC
	// A50.
	Interval time.Duration
	// MaxEjectionPercent bounds how many endpoints are out at once. Soft: (ejected +
	// 1) / usable must not be above it, and a single usable endpoint is never ejected;
	// absent means 100, as panic is the bound, and 50 if there is no panic. Envoy: the same over all endpoints, absent means 10. A50: the share
	// before an ejection must be below it, so that it may be passed by one; absent
	// means 10.
	MaxEjectionPercent Percent
	// AtLeastOne lets one endpoint be ejected whatever MaxEjectionPercent says (Envoy's
	// always_eject_one_host). Soft, Envoy.
	AtLeastOne bool
	// BaseEjectionTime is how long the first ejection lasts; each further one lasts as
	// much longer. 0 means 30 s. Envoy, A50.
	BaseEjectionTime time.Duration
	// MaxEjectionTime bounds that. 0 means 300 s, or BaseEjectionTime if that is
	// longer. Envoy, A50.
	MaxEjectionTime time.Duration
	// MaxEjectionJitter is added to each ejection by a random part from 0 to 1. 0 means
	// none. Envoy.
	MaxEjectionJitter time.Duration
	// Soft holds what only Soft knows.
	Soft SoftConfig
	// Envoy holds what only Envoy knows.
	Envoy EnvoyConfig
	// A50 holds what only A50 knows. Its zero value ejects nobody.
	A50 A50Config
	// Ramp is how an endpoint's share grows after its return. Soft.
	Ramp Ramp
	// Panic says when verdicts are no longer believed.
	Panic Panic
}

// Equal reports whether c says the same as o, whatever its pointers are.
func (c Config) Equal(o Config) bool {
	if !same(c.A50.SuccessRate, o.A50.SuccessRate) || !same(c.A50.FailurePercentage, o.A50.FailurePercentage) {
		return false
	}
	c.A50, o.A50 = A50Config{}, A50Config{}
	return c == o
}

// same compares what two pointers point to.
func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// Owned returns a copy that shares no pointer with c.
func (c Config) Owned() Config {
	if c.A50.SuccessRate != nil {
		own := *c.A50.SuccessRate
		c.A50.SuccessRate = &own
	}
	if c.A50.FailurePercentage != nil {
		own := *c.A50.FailurePercentage
		c.A50.FailurePercentage = &own
	}
	return c
}

// EjectsNobody reports whether no result whatever ejects an endpoint.
func (c Config) EjectsNobody() bool { return rulesOf(c).off() }

// SoftConfig is Soft's part of a Config.
type SoftConfig struct {
	// ConsecutiveFailures in a row eject at once. 0 means 5, [Off] never. On the ramp it
	// takes two at most.
	ConsecutiveFailures int
	// NoRate switches the comparison of failure rates off.
	NoRate bool
	// RequestVolume is how many requests make a rate. 0 means 20.
	RequestVolume int
	// MinHosts is how many endpoints must have a rate before any is judged by it. 0
	// means 3.
	MinHosts int
	// MaxWindow is how long a client with few requests collects, instead of Interval,
	// until RequestVolume is there. 0 means 60 s.
	MaxWindow time.Duration
	// ProbeBackoff is the wait before the first request to an ejected endpoint; it
	// doubles with each that fails. 0 means 0.5 s.
	ProbeBackoff time.Duration
	// MaxProbeBackoff bounds that. 0 means 8 s, or ProbeBackoff if that is longer.
	MaxProbeBackoff time.Duration
	// ProbeJitter spreads the waits by that part of them in either direction, so that
	// clients do not probe in step. 0 means 0.2; at most 1.
	ProbeJitter float64
	// ProbeTimeout is how long a probe may go without a result until another is let
	// out. 0 means 30 s.
	ProbeTimeout time.Duration
	// ProbeSuccesses in a row bring an endpoint back. 0 means 3.
	ProbeSuccesses int
	// ChecksReturn lets a passed health check bring an endpoint back too. Leave it off
	// where checks are shallower than requests.
	ChecksReturn bool
	// Remember is how long an endpoint that left the list keeps its verdict. 0 means
	// 60 s.
	Remember time.Duration
}

// SuccessRate ejects endpoints whose success rate is below the mean by more than
// StdevFactor standard deviations. It cannot see a group of failing endpoints that is
// larger than 1/(1 + factor²) of all: 21.7 % at the default.
type SuccessRate struct {
	// StdevFactor is that factor. 0 means 1.9 (1900 in Envoy's and gRPC's notation).
	StdevFactor float64
	// Enforce is how many of the verdicts count. Absent means 100.
	Enforce Percent
	// MinHosts is how many endpoints must have RequestVolume. 0 means 5.
	MinHosts int
	// RequestVolume is the number of requests in an interval that make a rate. 0 means
	// 100.
	RequestVolume int
}

// FailurePercentage ejects endpoints by a fixed limit.
type FailurePercentage struct {
	// Threshold is the limit: at it or above it in Envoy, above it in A50. Absent means 85.
	Threshold Percent
	// Enforce is how many of the verdicts count. Absent means 0 in Envoy, 100 in A50.
	Enforce Percent
	// MinHosts is how many endpoints must have RequestVolume. 0 means 5.
	MinHosts int
	// RequestVolume is the number of requests in an interval that make a percentage. 0
	// means 50.
	RequestVolume int
}

// EnvoyConfig is Envoy's part of a Config. Names follow Envoy's.
type EnvoyConfig struct {
	// Consecutive5xx failures in a row eject. 0 means 5, Off never.
	Consecutive5xx int
	// EnforceConsecutive5xx is how many of those verdicts count. Absent means 100.
	EnforceConsecutive5xx Percent
	// ConsecutiveGateway failures in a row eject. 0 means 5, Off never.
	ConsecutiveGateway int
	// EnforceConsecutiveGateway is how many of those verdicts count. Absent means 0.
	EnforceConsecutiveGateway Percent
	// SplitLocalOrigin judges failures to connect and timeouts apart from answers.
	SplitLocalOrigin bool
	// ConsecutiveLocal failures in a row eject, with SplitLocalOrigin. 0 means 5, Off
	// never.
	ConsecutiveLocal int
	// EnforceConsecutiveLocal is how many of those verdicts count. Absent means 100.
	EnforceConsecutiveLocal Percent
	// SuccessRate is on by default.
	SuccessRate SuccessRate
	// EnforceLocalSuccessRate is how many verdicts of the local success rate count.
	// Absent means 100.
	EnforceLocalSuccessRate Percent
	// FailurePercentage is watched, and not enforced, by default.
	FailurePercentage FailurePercentage
	// EnforceLocalFailurePercentage is how many verdicts of the local failure
	// percentage count. Absent means 0.
	EnforceLocalFailurePercentage Percent
	// IgnoreChecks keeps a passed health check from ending an ejection, which it does
	// by default.
	IgnoreChecks bool
}

// A50Config is A50's part of a Config.
type A50Config struct {
	// SuccessRate is nil for off.
	SuccessRate *SuccessRate
	// FailurePercentage is nil for off.
	FailurePercentage *FailurePercentage
}

// Ramp is the slow start of endpoints that return.
type Ramp struct {
	// Window is how long it takes to the full share. 0 means 10 s; below 0 there is no
	// ramp.
	Window time.Duration
	// Aggression above 1 gives more early, below 1 less. 0 means 1, a straight line.
	Aggression float64
	// Floor is the share to begin with. Absent means 10.
	Floor Percent
}

// Panic says when so many endpoints are out that it is likelier the verdicts that are
// wrong, or that those left cannot carry the load: then all are used. What results
// teach stays on, and so do probes.
type Panic struct {
	// Threshold is the share of available endpoints below which panic begins. Absent
	// means 50, and never in the mode A50, which has no panic. 0 is never.
	Threshold Percent
	// Leave is the share at which it ends. Absent means ten points above Threshold, 100
	// at most; but where all except one are available, as one of two, where it begins. Envoy leaves
	// where it enters, whatever this says.
	Leave Percent
	// FailFast leaves nobody to pick in a panic, so that a service that is down is not
	// also hammered.
	FailFast bool
}
