package sim

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// Bounds of a scenario's sizes.
const (
	MaxServers   = 100_000
	MaxBalancers = 100_000
	MaxUsers     = 1_000_000
	MaxWindows   = 16
	MaxClasses   = 100
	MaxBuckets   = 100_000
	// MaxRate bounds the number of requests a second, also within a burst.
	MaxRate = 1e9
	// MaxUpdates bounds how often what is renewed again and again is: the clients' lists, and
	// a shared table.
	MaxUpdates = 10_000_000
)

// problems collects what is wrong with the fields of one value.
type problems struct {
	at   string // the value's path
	errs []error
}

func (p *problems) add(err error) {
	if err != nil {
		p.errs = append(p.errs, err)
	}
}

func (p *problems) count(field string, v, low, high int) {
	if v < low || v > high {
		p.add(fmt.Errorf("sim: %s.%s is %d, want %d to %d", p.at, field, v, low, high))
	}
}

func (p *problems) number(field string, v, low, high float64) {
	p.add(number(p.at+"."+field, v, low, high))
}

func (p *problems) time(field string, d, low, high time.Duration) {
	p.add(within(p.at+"."+field, d, low, high))
}

// interval checks the time between things that happen all the time in a run of that length; 0 says
// that they do not.
func (p *problems) interval(field string, d, length time.Duration) {
	if d != 0 {
		p.time(field, d, max(time.Microsecond, length/MaxUpdates), maxDuration)
	}
}

func (p *problems) law(field string, l Law) {
	if l == nil {
		return
	}
	if err := l.Validate(); err != nil {
		p.add(fmt.Errorf("sim: %s.%s: %w", p.at, field, err))
	}
}

// Validate reports every problem of the scenario, joined. Overload is no problem: see
// [Scenario.Load].
func (s *Scenario) Validate() error {
	p := &problems{at: "Scenario"}
	p.count("Servers (number)", len(s.Servers), 1, MaxServers)
	p.count("Balancers", s.Balancers, 0, MaxBalancers)
	p.time("Delay", s.Delay, 0, time.Hour)
	p.time("Timeout", s.Timeout, 0, maxDuration)
	p.interval("Refresh", s.Refresh, s.Length)
	p.time("Reports.Age", s.Reports.Age, 0, maxDuration)
	p.time("Reports.Window", s.Reports.Window, 0, maxDuration)
	p.number("Reports.Lost", s.Reports.Lost, 0, 1)
	p.time("Length", s.Length, 0, maxDuration)
	p.time("WarmUp", s.WarmUp, 0, maxDuration)
	p.count("Requests", s.Requests, 0, math.MaxInt32)
	p.count("WarmUpRequests", s.WarmUpRequests, 0, math.MaxInt32)
	p.count("Windows (number)", len(s.Windows), 0, MaxWindows)
	for i, w := range s.Windows {
		w.validate(p, fmt.Sprintf("Windows[%d]", i))
	}
	p.law("Service", s.Service)
	if s.Bucket != 0 {
		p.time("Bucket", s.Bucket, max(time.Microsecond, s.Length/MaxBuckets), maxDuration)
		if s.Length == 0 {
			p.add(fmt.Errorf("sim: Scenario.Length is 0, want a limit with a Bucket"))
		}
	}
	if s.Length == 0 && s.Requests == 0 && s.Arrivals.Kind != Recorded {
		p.add(errors.New("sim: Scenario.Length and Requests are 0, want a limit"))
	}
	if n := s.Arrivals.Rate * s.Length.Seconds(); n > math.MaxInt32 && s.Requests == 0 {
		p.add(fmt.Errorf("sim: Scenario.Length × Arrivals.Rate is %.3g requests, want at most %d", n, math.MaxInt32))
	}
	p.count("Classes (number)", len(s.Classes), 0, MaxClasses)
	for i := range s.Classes {
		s.Classes[i].validate(p, i)
	}
	s.validateServers(p)
	s.Arrivals.validate(p)
	if s.Arrivals.Kind == Closed && s.Requests == 0 && s.Delay == 0 && s.Arrivals.Think == 0 && s.answersAtOnce() {
		p.add(errors.New("sim: Scenario.Requests is 0, want a limit for users who are answered in no time"))
	}
	return errors.Join(p.errs...)
}

// answersAtOnce reports whether there are answers that take no time.
func (s *Scenario) answersAtOnce() bool {
	for i := range s.Servers {
		if s.meanOn(i) == 0 {
			return true
		}
		for _, h := range s.Servers[i].Phases {
			if h.Fail != picker.Unknown && h.FailAfter == 0 || h.Service != nil && h.Service.Mean() == 0 {
				return true
			}
		}
	}
	return false
}

func (w Span) validate(p *problems, at string) {
	p.time(at+".From", w.From, 0, maxDuration)
	p.time(at+".Until", w.Until, w.From, maxDuration)
}

func (c *Class) validate(p *problems, i int) {
	at := fmt.Sprintf("Classes[%d]", i)
	p.number(at+".Share", c.Share, 0, 1e9)
	p.law(at+".Service", c.Service)
	p.law(at+".FirstByte", c.FirstByte)
	if c.Kind > picker.UnknownKind {
		p.add(fmt.Errorf("sim: %s.%s.Kind is %d, want Unary, Stream or UnknownKind", p.at, at, c.Kind))
	}
}

// validateServers stops after a few: the thousandth server has the mistake of the first.
func (s *Scenario) validateServers(p *problems) {
	before := len(p.errs)
	withLaw := true // every class has a law of its own
	for _, c := range s.Classes {
		withLaw = withLaw && c.Service != nil
	}
	withLaw = withLaw && len(s.Classes) > 0
	for i := range s.Servers {
		if len(p.errs) > before+8 {
			return
		}
		v := &s.Servers[i]
		at := fmt.Sprintf("Servers[%d]", i)
		p.count(at+".Workers", v.Workers, 0, math.MaxInt32)
		if v.Sharing && v.Workers == 0 {
			p.add(fmt.Errorf("sim: Scenario.%s.Workers is 0, want at least 1 with Sharing", at))
		}
		p.number(at+".Speed", v.Speed, 0, 1e9)
		p.law(at+".Service", v.Service)
		if v.Service == nil && s.Service == nil && !withLaw {
			p.add(fmt.Errorf("sim: Scenario.Service is nil, want a Law, as %s has none", at))
		}
		p.add(picker.Validate([]picker.Endpoint{{ID: at, Weight: v.Weight}}))
		for k := range v.Phases {
			v.Phases[k].validate(p, fmt.Sprintf("%s.Phases[%d]", at, k))
		}
	}
}

func (h *Phase) validate(p *problems, at string) {
	Span{"", h.From, h.Until}.validate(p, at)
	p.number(at+".Slow", h.Slow, 0, 1e9)
	p.number(at+".SlowEnd", h.SlowEnd, 0, 1e9)
	p.law(at+".Service", h.Service)
	p.time(at+".FailAfter", h.FailAfter, 0, maxDuration)
	p.number(at+".FailShare", h.FailShare, 0, 1)
	if h.Fail > picker.Canceled {
		p.add(fmt.Errorf("sim: %s.%s.Fail is %d, want an outcome", p.at, at, h.Fail))
	}
}

func (a *Arrivals) validate(p *problems) {
	const at = "Arrivals"
	switch a.Kind {
	case Poisson, Even, Bursts:
		p.number(at+".Rate", a.Rate, 1e-6, MaxRate)
	case Closed:
		p.count(at+".Users", a.Users, 1, MaxUsers)
		p.time(at+".Think", a.Think, 0, maxDuration)
	case Recorded:
		for i, t := range a.Times {
			low := time.Duration(0)
			if i > 0 {
				low = a.Times[i-1]
			}
			if err := within(fmt.Sprintf("Scenario.Arrivals.Times[%d]", i), t, low, maxDuration); err != nil {
				p.add(err)
				break
			}
		}
	default:
		p.add(fmt.Errorf("sim: Scenario.Arrivals.Kind is %d, want Poisson, Even, Closed, Recorded or Bursts", a.Kind))
	}
	if a.Kind == Bursts {
		p.time(at+".On", a.On, 1, maxDuration)
		p.time(at+".Period", a.Period, max(a.On, 1), maxDuration)
		// All of a period's requests come within On: their gaps must not vanish.
		if rate := a.Rate * float64(a.Period) / float64(a.On); a.On > 0 && rate > MaxRate {
			p.add(fmt.Errorf("sim: Scenario.%s.On is %v, want a part of Period in which at most %g requests a second arrive, not %.3g",
				at, a.On, float64(MaxRate), rate))
		}
	}
}
