package health

// Standing is what becomes of an endpoint, as one source sees it: the later, the worse.
type Standing uint8

// The standings.
const (
	// Serving endpoints get requests.
	Serving Standing = iota
	// Waiting endpoints are new, and wait for their first check.
	Waiting
	// Ejected endpoints failed real requests.
	Ejected
	// Failing endpoints fail their checks, or are reported so.
	Failing
	// Draining endpoints are leaving: they get nothing new, whatever else is known of them,
	// and are no part of any count of how many serve.
	Draining
)

var standingNames = [...]string{"serving", "waiting for its first check", "ejected", "failing", "draining"}

// String returns the standing in words.
func (s Standing) String() string {
	if int(s) < len(standingNames) {
		return standingNames[s]
	}
	return "invalid"
}

// Source is one of those who have a say.
type Source uint8

// The sources.
const (
	// Resolver is who gave the list of endpoints.
	Resolver Source = iota
	// Probes are the active checks.
	Probes
	// Ejection is the judgement on real requests.
	Ejection
	// Drain is the operator's word.
	Drain
	sources = 4
)

var sourceNames = [...]string{"resolver", "checks", "ejection", "drain"}

// String returns the source's name.
func (s Source) String() string {
	if int(s) < len(sourceNames) {
		return sourceNames[s]
	}
	return "invalid"
}

// Verdict is one source's word on an endpoint.
type Verdict struct {
	Source   Source
	Standing Standing
	// Reason is the source's own account; empty while Serving.
	Reason string
}

// Standings holds what every source says of one endpoint. The worst wins: no source can lift
// an endpoint that another has taken out. The zero Standings is Serving by all. It is a
// value, and not safe for concurrent use.
type Standings struct {
	by [sources]Verdict
}

// Set takes a source's word, in place of its last, and reports whether that changes the
// endpoint's standing. A source or standing that does not exist changes nothing.
func (s *Standings) Set(from Source, standing Standing, reason string) (changed bool) {
	if from >= sources || standing > Draining {
		return false
	}
	if standing == Serving {
		reason = ""
	}
	before := s.Worst().Standing
	s.by[from] = Verdict{from, standing, reason}
	return s.Worst().Standing != before
}

// Worst returns the verdict that counts: the worst, of the first source among equals.
func (s *Standings) Worst() Verdict {
	worst := s.by[0]
	for _, v := range s.by[1:] {
		if v.Standing > worst.Standing {
			worst = v
		}
	}
	return worst
}

// All appends what every source says that does not say Serving.
func (s *Standings) All(to []Verdict) []Verdict {
	for _, v := range s.by {
		if v.Standing != Serving {
			to = append(to, v)
		}
	}
	return to
}

// Available reports whether the endpoint gets requests in the ordinary way.
func (s *Standings) Available() bool { return s.Worst().Standing == Serving }

// Counts reports whether the endpoint is one of those of which a share must be available: the
// denominator of panic and of the cap on ejections. In panic these are used, too.
func (s *Standings) Counts() bool { return s.Worst().Standing != Draining }
