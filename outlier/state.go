package outlier

import "time"

// State is where an endpoint stands with its detector.
type State uint8

const (
	// Available endpoints are picked as usual.
	Available State = iota
	// Ejected ones get no requests.
	Ejected
	// Probing ones are ejected, and single requests may find out whether they are well
	// again. Soft.
	Probing
	// Ramping ones are back and get a share that grows. Soft.
	Ramping
)

// String returns the state's name.
func (s State) String() string {
	switch s {
	case Available:
		return "available"
	case Ejected:
		return "ejected"
	case Probing:
		return "probing"
	case Ramping:
		return "ramping"
	}
	return "invalid"
}

// Standing is what the owner knows of a member from elsewhere.
type Standing uint8

const (
	// Usable members have nothing against them.
	Usable Standing = iota
	// Failing members fail their health checks: picked in a panic alone.
	Failing
	// Unready members cannot be picked, such as those without a connection.
	Unready
	// Drained members are leaving, or have weight 0: never picked, and in nobody's
	// denominator.
	Drained
)

// String returns the standing's name.
func (s Standing) String() string {
	switch s {
	case Usable:
		return "usable"
	case Failing:
		return "failing checks"
	case Unready:
		return "not ready"
	case Drained:
		return "drained"
	}
	return "invalid"
}

// Reason says why a state changed.
type Reason uint8

// The reasons. The first group ejects, the second brings back.
const (
	// NoReason is that of an endpoint that was never ejected.
	NoReason Reason = iota
	// ConsecutiveFailures in a row: Soft's, and Envoy's consecutive 5xx.
	ConsecutiveFailures
	// ConsecutiveGatewayFailures in a row.
	ConsecutiveGatewayFailures
	// ConsecutiveLocalFailures in a row, of local origin.
	ConsecutiveLocalFailures
	// FailureRate far from the pool's median.
	FailureRate
	// LowSuccessRate, below the mean by some standard deviations.
	LowSuccessRate
	// LowLocalSuccessRate is the same of local origin.
	LowLocalSuccessRate
	// HighFailurePercentage, by a fixed limit.
	HighFailurePercentage
	// HighLocalFailurePercentage is the same of local origin.
	HighLocalFailurePercentage

	// Recovered: requests went well while ejected.
	Recovered
	// TimeServed: the ejection's time is over.
	TimeServed
	// CheckPassed: a health check passed.
	CheckPassed
	// Pardoned: it was ejected for timeouts just before many others had them. Soft.
	Pardoned
	// Reconfigured: the configuration no longer ejects anybody.
	Reconfigured
	// RampBegun: the owner asked for a ramp, or checks pass again.
	RampBegun
	// RampOver: the full share is reached.
	RampOver
)

var reasonNames = [...]string{"none", "consecutive failures", "consecutive gateway failures",
	"consecutive local failures", "failure rate", "success rate", "local success rate", "failure percentage",
	"local failure percentage", "recovered", "time served", "check passed", "pardoned", "reconfigured", "ramp begun", "ramp over"}

// String returns the reason in words.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "invalid"
}

// Change is one endpoint's change of state.
type Change struct {
	// Host is the endpoint's.
	Host *Host
	// ID is the endpoint's.
	ID string
	// Index is the endpoint's in the list.
	Index int
	// From and To are the states before and after. To is never Probing, which begins by
	// itself when time has come.
	From, To State
	// Reason says what made it change.
	Reason Reason
}

// HostStats is a picture of one endpoint.
type HostStats struct {
	// ID is the endpoint's.
	ID string
	// State is where it stands.
	State State
	// Standing is what the owner said.
	Standing Standing
	// Reason is that of its last ejection.
	Reason Reason
	// Epoch is how often it was ejected.
	Epoch uint32
	// Multiplier is how many times BaseEjectionTime the ejection lasts. Envoy, A50.
	Multiplier int
	// ProbesFailed is how many failed since it was last well. Soft.
	ProbesFailed int
	// Wait is how long until it may come back (Envoy, A50) or be probed (Soft); 0 if it
	// is not ejected, or may be already.
	Wait time.Duration
	// Capped is how often it would have been ejected but for MaxEjectionPercent.
	Capped uint64
	// Unenforced is how often it would have been ejected but for an Enforce.
	Unenforced uint64
	// SlowStart says that it has a slow start; see [Detector.SetSlowStart].
	SlowStart bool
	// Spared is how often timeouts did not eject it because many failed at once. Soft.
	Spared uint64
}
