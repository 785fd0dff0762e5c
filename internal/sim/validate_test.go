package sim

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

func valid() Scenario {
	return Scenario{
		Servers: equal(2, Server{}), Service: Fixed{millisecond}, Arrivals: Arrivals{Rate: 10}, Length: second,
	}
}

func TestScenarioErrorsNameFieldValueAndBound(t *testing.T) {
	if s := valid(); s.Validate() != nil {
		t.Fatal(s.Validate())
	}
	cases := map[string]func(*Scenario){
		"sim: Scenario.Servers (number) is 0, want 1 to 100000":                           func(s *Scenario) { s.Servers = nil },
		"sim: Scenario.Balancers is -1, want 0 to 100000":                                 func(s *Scenario) { s.Balancers = -1 },
		"sim: Scenario.Delay is -1ns, want 0s to 1h0m0s":                                  func(s *Scenario) { s.Delay = -1 },
		"sim: Scenario.Timeout is -1s, want 0s to":                                        func(s *Scenario) { s.Timeout = -second },
		"sim: Scenario.Length and Requests are 0, want a limit":                           func(s *Scenario) { s.Length = 0 },
		"sim: Scenario.Length is 0, want a limit with a Bucket":                           func(s *Scenario) { s.Length, s.Requests, s.Bucket = 0, 1, second },
		"sim: Scenario.Bucket is 1ns, want 10µs to":                                       func(s *Scenario) { s.Bucket = 1 },
		"sim: Scenario.Windows[1].Until is 1s, want 2s to":                                func(s *Scenario) { s.Windows = []Span{{}, {"w", 2 * second, second}} },
		"sim: Scenario.Windows (number) is 17, want 0 to 16":                              func(s *Scenario) { s.Windows = make([]Span, 17) },
		"sim: Scenario.Service is nil, want a Law, as Servers[0] has none":                func(s *Scenario) { s.Service = nil },
		"sim: Scenario.Service: sim: Uniform.High is 0s, want 1s to":                      func(s *Scenario) { s.Service = Uniform{second, 0} },
		"sim: Scenario.Servers[1].Service: sim: Pareto.Alpha is 0, want 0.1 to 100":       func(s *Scenario) { s.Servers[1].Service = Pareto{1, 0, 1} },
		"sim: Scenario.Servers[1].Speed is NaN, want 0 to 1e+09":                          func(s *Scenario) { s.Servers[1].Speed = math.NaN() },
		"sim: Scenario.Servers[0].Workers is 0, want at least 1 with Sharing":             func(s *Scenario) { s.Servers[0].Sharing = true },
		"Weight is -1, want 0 or":                                                         func(s *Scenario) { s.Servers[0].Weight = evenkeel.WeightOf(-1) },
		"sim: Scenario.Servers[0].Phases[0].FailShare is 2, want 0 to 1":                  func(s *Scenario) { s.Servers[0].Phases = []Phase{{FailShare: 2}} },
		"sim: Scenario.Servers[0].Phases[0].Until is 0s, want 1s to":                      func(s *Scenario) { s.Servers[0].Phases = []Phase{{From: second}} },
		"sim: Scenario.Servers[0].Phases[0].Fail is 99, want an outcome":                  func(s *Scenario) { s.Servers[0].Phases = []Phase{{Fail: 99}} },
		"sim: Scenario.Classes[0].Share is -1, want 0 to 1e+09":                           func(s *Scenario) { s.Classes = []Class{{Share: -1}} },
		"sim: Scenario.Classes[0].Kind is 7, want Unary, Stream or UnknownKind":           func(s *Scenario) { s.Classes = []Class{{Kind: 7}} },
		"sim: Scenario.Arrivals.Rate is -5, want 1e-06 to 1e+09":                          func(s *Scenario) { s.Arrivals.Rate = -5 },
		"sim: Scenario.Length × Arrivals.Rate is 1e+12 requests, want at most 2147483647": func(s *Scenario) { s.Length, s.Arrivals.Rate = 1000*second, 1e9 },
		"sim: Scenario.Classes (number) is 101, want 0 to 100":                            func(s *Scenario) { s.Classes = make([]Class, 101) },
		"sim: Scenario.Requests is 0, want a limit for users": func(s *Scenario) {
			s.Service, s.Arrivals = Fixed{}, Arrivals{Kind: Closed, Users: 1}
		},
		"sim: Scenario.Arrivals.Users is 0, want 1 to 1000000": func(s *Scenario) { s.Arrivals = Arrivals{Kind: Closed} },
		"sim: Scenario.Arrivals.Times[1] is 0s, want 1s to":    func(s *Scenario) { s.Arrivals = Arrivals{Kind: Recorded, Times: []time.Duration{second, 0}} },
		"sim: Scenario.Arrivals.Period is 1s, want 2s to":      func(s *Scenario) { s.Arrivals = Arrivals{Kind: Bursts, Rate: 1, On: 2 * second, Period: second} },
		"sim: Scenario.Arrivals.On is 1ns, want a part of Period in which at most 1e+09 requests a second arrive, not 3.6e+16": func(s *Scenario) {
			s.Arrivals = Arrivals{Kind: Bursts, Rate: 10, On: 1, Period: 1000 * time.Hour}
		},
		"sim: Scenario.Reports.Age is -1ns, want 0s to":                                         func(s *Scenario) { s.Reports.Age = -1 },
		"sim: Scenario.Reports.Window is -1ns, want 0s to":                                      func(s *Scenario) { s.Reports.Window = -1 },
		"sim: Scenario.Reports.Lost is 2, want 0 to 1":                                          func(s *Scenario) { s.Reports.Lost = 2 },
		"sim: Scenario.Refresh is 1ns, want 1µs to":                                             func(s *Scenario) { s.Refresh = 1 },
		"sim: Scenario.Refresh is 1µs, want 100µs to":                                           func(s *Scenario) { s.Refresh, s.Length = time.Microsecond, 1000*second },
		"sim: Scenario.Arrivals.Kind is 9, want Poisson, Even, Closed, Recorded or Bursts":      func(s *Scenario) { s.Arrivals.Kind = 9 },
		"sim: Scenario.Service: sim: Quantiles[1] is below Quantiles[0], want both Part and Ti": func(s *Scenario) { s.Service = Quantiles{{0, second}, {1, 0}} },
		"sim: Scenario.Service: sim: Quantiles has not both ends":                               func(s *Scenario) { s.Service = Quantiles{{0, second}} },
	}
	for want, spoil := range cases {
		s := valid()
		spoil(&s)
		err := s.Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
			continue
		}
		if _, ran := Run(s, Policy{}, 1); ran == nil {
			t.Errorf("%s: it ran", want)
		}
	}
}

func TestScenarioErrorsComeAllAtOnce(t *testing.T) {
	s := valid()
	s.Balancers, s.Delay, s.Arrivals.Rate = -1, -1, 0
	_, err := Run(s, Policy{Prime: -1, TableAge: -1, Config: evenkeel.Config{Policy: picker.P2C{Choices: 99}}}, 1)
	for _, field := range []string{"Balancers", "Delay", "Rate", "Prime", "TableAge", "Choices"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
}

// A table that is renewed every nanosecond takes for ever.
func TestTablesAreRenewedByTheMicrosecondAtMost(t *testing.T) {
	for age, ok := range map[time.Duration]bool{0: true, 1: false, time.Microsecond - 1: false, time.Microsecond: true} {
		p := Policy{TableAge: age}
		err := p.Validate()
		if ok != (err == nil) || !ok && !strings.Contains(err.Error(), "sim: Policy.TableAge is "+age.String()+", want 1µs to") {
			t.Errorf("age %v: %v", age, err)
		}
	}
	s := valid()
	s.Length, s.Arrivals.Rate = 1000*time.Hour, 1e-6
	p, err := PolicyNamed("p2c_table@1us")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(s, p, 1); err == nil || !strings.Contains(err.Error(), "sim: Policy.TableAge is 1µs, want 360ms to") {
		t.Errorf("a table renewed 3.6 · 10^12 times: %v", err)
	}
}

func TestPoliciesAndCasesGoByName(t *testing.T) {
	for _, name := range PolicyNames() {
		if strings.HasSuffix(name, "@") {
			name += "100ms"
		}
		p, err := PolicyNamed(name)
		if err != nil || p.Name != name {
			t.Errorf("%s: %q, %v", name, p.Name, err)
		}
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []string{"", "p2", "p2c@1s", "least_table", "least_table@", "least_table@-1s", "least_table@1ns", "p2c_table@x"} {
		if _, err := PolicyNamed(bad); err == nil {
			t.Errorf("policy %q was accepted", bad)
		}
	}
	seen := map[string]bool{}
	for _, c := range Cases() {
		if seen[c.Name] || c.Name == "" || c.Name != c.Scenario.Name || len(c.Figures) == 0 {
			t.Errorf("case %q is a duplicate, or has no name or no figure", c.Name)
		}
		seen[c.Name] = true
		if err := c.Scenario.Validate(); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if slow := c.Scale(100); slow.Scenario.Validate() != nil || math.Abs(slow.Scenario.Load()-c.Scenario.Load()) > 1e-6 {
			t.Errorf("%s, scaled: load %v, was %v; %v", c.Name, slow.Scenario.Load(), c.Scenario.Load(), slow.Scenario.Validate())
		}
	}
	if list, err := CasesNamed("S6", "fleet_a/B=50", "S3*100"); err != nil || len(list) != 4 || list[3].Name != "S3*100" {
		t.Errorf("%d cases, %v", len(list), err)
	}
	for _, bad := range []string{"S", "S99", "S3*x", "S3*0"} {
		if _, err := CasesNamed(bad); err == nil {
			t.Errorf("case %q was accepted", bad)
		}
	}
}
