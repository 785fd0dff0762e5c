package sim

import (
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// Scenario is a fleet, its traffic and what happens to it. It is a value without
// state: one Scenario may run any number of times, also concurrently. All times are
// virtual and count from the start of a run.
type Scenario struct {
	// Name is for reports.
	Name string
	// Servers are all servers that are ever members, 1 to 100,000 of them.
	Servers []Server
	// Service is how long the work of one request takes on a server of speed 1 that is
	// idle.
	Service Law
	// Classes are the kinds of requests; none means unary requests of the law Service.
	Classes []Class
	// Arrivals say when requests come.
	Arrivals Arrivals
	// Balancers is the number of clients, each with a pool of its own, up to 100,000; 0
	// means 1.
	Balancers int
	// InTurn sends request i through balancer i mod Balancers; otherwise each goes through
	// a random one.
	InTurn bool
	// Delay is how long a request takes to a server, and its answer back, 0 to an hour.
	Delay time.Duration
	// Timeout is when clients give up; the server knows nothing of it and does the work
	// all the same. 0 means never.
	Timeout time.Duration
	// Reports are what servers say about themselves on their answers. The zero value: nothing.
	Reports Reports
	// Refresh is the time between updates of the clients' lists that change nothing; 0
	// means none, and the least is 1 µs or Length/10,000,000.
	Refresh time.Duration

	// Length is how long requests arrive; Requests is how many do. Whichever comes first
	// ends the traffic, and 0 means no limit, of which there must be one (a recorded list
	// is one). What is under way then is still served.
	Length   time.Duration
	Requests int
	// WarmUp and WarmUpRequests leave the first requests out of the results.
	WarmUp         time.Duration
	WarmUpRequests int

	// Windows are parts of the run with results of their own, at most 16.
	Windows []Span
	// Bucket is the length of the steps of the time series; 0 means none is kept. At most
	// 100,000 steps.
	Bucket time.Duration
}

// Span is a named part of a run: requests that arrive from From until before Until.
type Span struct {
	Name        string
	From, Until time.Duration
}

// Server is one server. The zero value works on any number of requests at once, each at
// speed 1.
type Server struct {
	// Workers is how many requests it works on at once; further ones wait in order. 0
	// means any number, so that latency does not depend on load.
	Workers int
	// Sharing divides Workers among all requests at hand instead, each of which gets one
	// at most (processor sharing). Workers must be at least 1.
	Sharing bool
	// Speed divides the time of work; 0 means 1.
	Speed float64
	// Service takes the place of the scenario's law; nil means that one.
	Service Law
	// Weight is what clients are told of its capacity.
	Weight evenkeel.Weight
	// Report is what it says of itself where servers report.
	Report Reporting
	// Phases are what happens to it. They may overlap: factors multiply, and of several
	// that fail or have a law, the last counts.
	Phases []Phase
}

// Phase is something that holds for a server from From until before Until. The state of
// a request's server counts at the instant when its work begins; of one that fails or
// hangs, when the request comes in.
type Phase struct {
	From, Until time.Duration
	// Slow multiplies the time of work; 0 means 1.
	Slow float64
	// SlowEnd, if not 0, is what Slow changes to in a straight line, as a cold server that
	// warms up.
	SlowEnd float64
	// Service takes the place of the server's law; nil means that one.
	Service Law
	// Fail, if not picker.Unknown, is how every request that comes in is answered, after
	// FailAfter and without a worker.
	Fail      picker.Outcome
	FailAfter time.Duration
	// FailShare is the part of requests that fail; 0 means all.
	FailShare float64
	// Hang leaves what comes in without an answer, and without a worker.
	Hang bool
	// Absent takes the server off the clients' lists. It goes on working.
	Absent bool
	// Drained gives it the weight 0.
	Drained bool
}

// Class is a kind of request.
type Class struct {
	// Name is for reports.
	Name string
	// Share is its part of the requests, relative to the other classes'; 0 means 1.
	Share float64
	// Kind is what the client tells its pool.
	Kind picker.Kind
	// Service takes the place of every server's law; nil means those.
	Service Law
	// FirstByte is when, from the beginning of the work, the first byte of the answer
	// leaves the server, if it does before the end; nil means that the end is all there
	// is.
	FirstByte Law
}

// ArrivalKind is how requests come.
type ArrivalKind uint8

const (
	// Poisson is independent users: exponential gaps.
	Poisson ArrivalKind = iota
	// Even is a metronome.
	Even
	// Closed is a number of users, each of whom asks again when answered.
	Closed
	// Recorded is a list of instants.
	Recorded
	// Bursts is Poisson traffic that comes only in the first part of each period.
	Bursts
)

var arrivalNames = [...]string{"poisson", "even", "closed", "recorded", "bursts"}

// String returns the name in lower case.
func (k ArrivalKind) String() string {
	if int(k) < len(arrivalNames) {
		return arrivalNames[k]
	}
	return "invalid"
}

// Arrivals say when requests come.
type Arrivals struct {
	// Kind is how.
	Kind ArrivalKind
	// Rate is the mean number of requests per second, for all kinds but Closed and
	// Recorded: 1e-6 to 1e9.
	Rate float64
	// Users is the number of them in Closed, 1 to 1,000,000; Think is how long each waits
	// between an answer and the next request.
	Users int
	Think time.Duration
	// Times are the instants of Recorded, in ascending order.
	Times []time.Duration
	// Period and On are the time from burst to burst and the length of one, in Bursts. Within
	// a burst requests come at Rate · Period/On, 1e9 a second at most.
	Period, On time.Duration
}

func (s *Scenario) balancers() int { return max(s.Balancers, 1) }

func (v *Server) speed() float64 {
	if v.Speed == 0 {
		return 1
	}
	return v.Speed
}

// meanOn returns the mean time of work on server i in nanoseconds, without its phases.
func (s *Scenario) meanOn(i int) float64 {
	v := &s.Servers[i]
	law := s.Service
	if v.Service != nil {
		law = v.Service
	}
	own := 0.0 // of the requests whose class has no law
	if law != nil {
		own = law.Mean()
	}
	if len(s.Classes) == 0 {
		return own / v.speed()
	}
	sum, shares := 0.0, 0.0
	for _, c := range s.Classes {
		mean := own
		if c.Service != nil {
			mean = c.Service.Mean()
		}
		sum += float64(c.share() * mean)
		shares += c.share()
	}
	return sum / shares / v.speed()
}

func (c *Class) share() float64 {
	if c.Share == 0 {
		return 1
	}
	return c.Share
}

// Load returns the mean rate of arriving work over the capacity of all servers without
// their phases: 1 and more cannot be served for long. It is 0 where it means nothing:
// some server works on any number of requests at once, or arrivals wait for answers or
// come from a list.
func (s *Scenario) Load() float64 {
	switch s.Arrivals.Kind {
	case Closed, Recorded:
		return 0
	}
	capacity := 0.0 // requests per second
	for i := range s.Servers {
		mean := s.meanOn(i)
		if s.Servers[i].Workers == 0 || mean == 0 {
			return 0
		}
		capacity += float64(s.Servers[i].Workers) * 1e9 / mean
	}
	if capacity == 0 {
		return 0
	}
	return s.Arrivals.Rate / capacity
}

// Scale returns the scenario with every time multiplied by f and every rate divided by
// it, f > 0: the same in slow motion. A policy whose constants are right for all
// services shows the same picture.
func (s Scenario) Scale(f float64) Scenario {
	servers := make([]Server, len(s.Servers))
	for i, v := range s.Servers {
		v.Service = scaleLaw(v.Service, f)
		phases := make([]Phase, len(v.Phases))
		for k, p := range v.Phases {
			p.From, p.Until, p.FailAfter = scaled(p.From, f), scaled(p.Until, f), scaled(p.FailAfter, f)
			p.Service = scaleLaw(p.Service, f)
			phases[k] = p
		}
		v.Phases = phases
		servers[i] = v
	}
	classes := make([]Class, len(s.Classes))
	for i, c := range s.Classes {
		c.Service, c.FirstByte = scaleLaw(c.Service, f), scaleLaw(c.FirstByte, f)
		classes[i] = c
	}
	windows := make([]Span, len(s.Windows))
	for i, w := range s.Windows {
		windows[i] = Span{w.Name, scaled(w.From, f), scaled(w.Until, f)}
	}
	times := make([]time.Duration, len(s.Arrivals.Times))
	for i, t := range s.Arrivals.Times {
		times[i] = scaled(t, f)
	}
	s.Servers, s.Classes, s.Windows, s.Arrivals.Times = servers, classes, windows, times
	s.Service = scaleLaw(s.Service, f)
	s.Arrivals.Rate /= f
	for _, d := range []*time.Duration{&s.Arrivals.Think, &s.Arrivals.Period, &s.Arrivals.On,
		&s.Delay, &s.Timeout, &s.Refresh, &s.Reports.Age, &s.Reports.Window, &s.Length, &s.WarmUp, &s.Bucket} {
		*d = scaled(*d, f)
	}
	return s
}

func scaleLaw(l Law, f float64) Law {
	if l == nil {
		return nil
	}
	return l.Scale(f)
}
