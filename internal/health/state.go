package health

// Result is the outcome of one check.
type Result uint8

// The results of a check.
const (
	// Passed is an expected answer in time.
	Passed Result = iota
	// Failed is no answer in time, no connection, or an answer that says "try again".
	Failed
	// Unexpected is an answer that is not an expected one.
	Unexpected
)

// Status is what the checks of an endpoint say.
type Status uint8

// The statuses.
const (
	// Unchecked is an endpoint whose first check has not ended.
	Unchecked Status = iota
	// Healthy is an endpoint that passes its checks.
	Healthy
	// Unhealthy is an endpoint that fails them.
	Unhealthy
)

var statusNames = [...]string{"unchecked", "healthy", "unhealthy"}

// String returns the status's name in lower case.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "invalid"
}

// State is what the checks of one endpoint have come to. It is a value; the zero State is
// that of an endpoint which was never checked.
type State struct {
	status  Status
	against int32 // results in a row that speak against the status
}

// Status returns the verdict.
func (s State) Status() Status { return s.status }

// Next returns the state after one more result. The first result decides alone; then Rise
// and Fall must be reached in a row. c must be valid.
func (s State) Next(r Result, c Config) State {
	c = c.WithDefaults()
	passed := r == Passed
	switch {
	case s.status == Unchecked:
		return told(passed)
	case passed == (s.status == Healthy):
		return State{status: s.status}
	case r == Unexpected && c.UnexpectedAtOnce:
		return told(false)
	}
	s.against++
	if passed && int(s.against) >= c.Rise || !passed && int(s.against) >= c.Fall {
		return told(passed)
	}
	return s
}

// told returns the state of a fresh verdict.
func told(healthy bool) State {
	if healthy {
		return State{status: Healthy}
	}
	return State{status: Unhealthy}
}
