package sim

import (
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// Reported is fleet A with servers that report. From a thousand clients on there are 64 servers,
// eight of them slow, for 40 s: clients send about one request a second then, as 500 do to eight.
func Reported(name string, balancers int) Scenario {
	f := FleetA(balancers)
	if balancers >= 1000 {
		f.Servers, f.Slow, f.Length = 64, 8, 40*time.Second
	}
	s := f.Scenario(fmt.Sprintf("reported/%s/B=%d", name, balancers))
	s.Reports.On = true
	return s
}

// ReportedFailing is the same of equal servers, the last of which answers with a failure after a
// millisecond for 20 s.
func ReportedFailing(balancers int) Scenario {
	s := Reported("fail_pulse", balancers)
	if balancers < 1000 {
		name := s.Name
		s = FailPulse(balancers)
		s.Name, s.Reports.On = name, true
		return s
	}
	n := len(s.Servers)
	s.WarmUp, s.Servers = 0, equal(n, Server{Workers: 1})
	s.Servers[n-1].Phases = []Phase{{From: 10 * time.Second, Until: 30 * time.Second, Fail: picker.Failure, FailAfter: time.Millisecond}}
	return s
}

// Unreported is s with servers that say nothing: what a client that ignores reports makes of it.
func Unreported(s Scenario) Scenario {
	s.Reports = Reports{}
	return s
}

// ReportedVariants are what can be wrong with the reports of a fleet.
func ReportedVariants() []struct {
	Name  string
	Apply func(*Scenario)
} {
	return []struct {
		Name  string
		Apply func(*Scenario)
	}{
		{"lost_half", func(s *Scenario) { s.Reports.Lost = 0.5 }},
		{"lost_all", func(s *Scenario) { s.Reports.Lost = 1 }},
		{"ten_seconds_old", func(s *Scenario) { s.Reports.Age = 10 * time.Second }},
		{"early", func(s *Scenario) { s.Reports.Early = true }},
		{"half_silent", func(s *Scenario) {
			for i := 0; i < len(s.Servers); i += 2 {
				s.Servers[i].Report.Silent = true
			}
		}},
		{"one_lies", func(s *Scenario) { s.Servers[0].Report.Lie = Lies()[0].Load }},
	}
}

// Lies are what a server may report to get requests, or by mistake.
func Lies() []struct {
	Name string
	Load func(n int) picker.Load
} {
	idle := picker.Load{}.WithInFlight(0).WithLatency(1).WithErrorRate(0)
	busy := picker.Load{}.WithInFlight(1e300).WithLatency(time.Hour)
	alternating := func(every int) func(n int) picker.Load {
		return func(n int) picker.Load {
			if n%every == 0 {
				return busy
			}
			return idle
		}
	}
	return []struct {
		Name string
		Load func(n int) picker.Load
	}{
		{"idle", func(int) picker.Load { return idle }},
		{"busy", func(int) picker.Load { return busy }},
		{"nothing", func(int) picker.Load { return picker.Load{} }},
		{"busy_every_second", alternating(2)},
		{"busy_every_tenth", alternating(10)},
		{"all_fail", func(int) picker.Load { return idle.WithErrorRate(1) }},
		{"ever_busier", func(n int) picker.Load { return picker.Load{}.WithInFlight(float64(n)) }},
		{"ever_less", func(n int) picker.Load { return picker.Load{}.WithInFlight(1e6 / float64(n+1)) }},
	}
}

// Liar is eight equal servers under fleet A's traffic that report, the first of which answers as
// the others do and lies. workers is how many requests each works on at once, 0 for any number.
func Liar(lie string, balancers, workers int) Scenario {
	s := FleetA(balancers).Scenario(fmt.Sprintf("reported/liar/%s/workers=%d/B=%d", lie, workers, balancers))
	s.Servers = equal(8, Server{Workers: workers})
	s.Reports.On = true
	s.Bucket = 2 * time.Second
	for _, l := range Lies() {
		if l.Name == lie {
			s.Servers[0].Report.Lie = l.Load
		}
	}
	return s
}

// worstShare is the greatest share of server i in a step of the time series after the warm-up.
func worstShare(name string, i int) Figure {
	return Figure{Name: name, Unit: "%", Of: func(r *Result) float64 {
		worst := 0.0
		for _, b := range r.Buckets {
			if b.From < 10*time.Second || b.Requests == 0 {
				continue
			}
			sum := 0
			for _, n := range b.Picks {
				sum += n
			}
			worst = max(worst, 100*float64(b.Picks[i])/float64(max(sum, 100)))
		}
		return worst
	}}
}

// ReportedCases are fleets whose servers report.
func ReportedCases() (out []Case) {
	for _, b := range []int{50, 500, 4000} {
		out = append(out, againstBound(Reported("fleet", b)))
		for _, v := range ReportedVariants() {
			s := Reported(v.Name, b)
			v.Apply(&s)
			out = append(out, againstBound(s))
		}
		out = append(out, against(ReportedFailing(b), success))
	}
	for _, l := range Lies() {
		for _, b := range []int{1, 50, 500} {
			for _, workers := range []int{0, 1} {
				out = append(out, against(Liar(l.Name, b, workers),
					shareOf("liar's share", "", 0, 1), worstShare("liar's worst 2 s", 0)))
			}
		}
	}
	return out
}
