package sim

import (
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// Fleet is the size of a fleet of servers that work on one request at a time, of which
// some are slow. [FleetA] is the usual one.
type Fleet struct {
	// Servers is how many there are; the last Slow of them take SlowBy times as long.
	Servers, Slow int
	SlowBy        float64
	// Load is the rate of arriving work over the capacity of all, that of the slow ones as
	// they are.
	Load float64
	// Service is the law of a server that is not slow.
	Service Law
	// Sharing makes them share instead of working in order.
	Sharing bool
	// Balancers is the number of clients.
	Balancers int
	// Length is how long requests arrive, WarmUp what is left out of it.
	Length, WarmUp time.Duration
}

// FleetA returns the fleet that most of the figures are about: eight servers with
// exponential service of 10 ms, one three times slower, at 70 % of their capacity, which
// are 513.3 requests a second; for a minute, without its first ten seconds.
func FleetA(balancers int) Fleet {
	return Fleet{
		Servers: 8, Slow: 1, SlowBy: 3, Load: 0.7, Service: Exponential{10 * time.Millisecond},
		Balancers: balancers, Length: time.Minute, WarmUp: 10 * time.Second,
	}
}

// Scenario returns the fleet with Poisson arrivals and half a millisecond of network each
// way. What is wrong with the fleet is wrong with the scenario.
func (f Fleet) Scenario(name string) Scenario {
	s := Scenario{
		Name: name, Service: f.Service, Balancers: f.Balancers, Delay: time.Millisecond / 2,
		Length: f.Length, WarmUp: f.WarmUp, Servers: equal(f.Servers, Server{Workers: 1, Sharing: f.Sharing}),
	}
	for i := max(f.Servers-f.Slow, 0); i < f.Servers; i++ {
		s.Servers[i].Speed = 1 / f.SlowBy
	}
	if f.Service == nil {
		return s
	}
	capacity := float64(f.Servers-f.Slow) + float64(f.Slow)/f.SlowBy
	s.Arrivals.Rate = f.Load * capacity * 1e9 / f.Service.Mean()
	return s
}

// pulseFleet is fleet A's traffic on eight equal servers, and something that happens to
// the last of them from 20 to 40 s. Nothing is left out.
func pulseFleet(balancers int, name string, p Phase) Scenario {
	s := FleetA(balancers).Scenario(name)
	p.From, p.Until = 20*time.Second, 40*time.Second
	s.Servers[7] = Server{Workers: 1, Phases: []Phase{p}}
	s.WarmUp = 0
	return s
}

// SlowPulse is fleet A's traffic on eight equal servers, one of which takes three times
// as long from 20 to 40 s.
func SlowPulse(balancers int) Scenario {
	return pulseFleet(balancers, fmt.Sprintf("slow_pulse/B=%d", balancers), Phase{Slow: 3})
}

// FailPulse is fleet A's traffic on eight equal servers, one of which answers with a
// failure after a millisecond from 20 to 40 s.
func FailPulse(balancers int) Scenario {
	return pulseFleet(balancers, fmt.Sprintf("fail_pulse/B=%d", balancers),
		Phase{Fail: picker.Failure, FailAfter: time.Millisecond})
}

// bimodalWork is mostly short, and rarely four hundred times as long.
var bimodalWork = Bimodal{Short: 2 * time.Millisecond, Long: 800 * time.Millisecond, LongShare: 0.005}

// paretoWork has a mean of 10 ms without its cap.
var paretoWork = Pareto{Least: 10 * time.Millisecond / 3, Alpha: 1.5, Cap: 2 * time.Second}

// FleetACases returns fleet A and its variations, for several numbers of clients.
func FleetACases() []Case {
	var out []Case
	add := func(name string, change func(*Fleet), balancers ...int) {
		for _, b := range balancers {
			f := FleetA(b)
			change(&f)
			out = append(out, againstBound(f.Scenario(fmt.Sprintf("%s/B=%d", name, b))))
		}
	}
	size := func(n, slow int) func(*Fleet) { return func(f *Fleet) { f.Servers, f.Slow = n, slow } }
	load := func(v float64) func(*Fleet) { return func(f *Fleet) { f.Load = v } }
	add("fleet_a", func(*Fleet) {}, 1, 50, 500, 2000)
	for _, b := range []int{1, 50, 500} {
		out = append(out, againstBound(SlowPulse(b)))
	}
	for _, b := range []int{1, 50, 500} {
		c := againstBound(FailPulse(b))
		good := Figure{Name: "p99 of successes", Unit: "ms", Of: func(r *Result) float64 { return ms(r.Total.Good.Quantile(0.99)) }}
		c.Figures = []Figure{success, good, relative(good)}
		out = append(out, c)
	}
	add("bimodal", func(f *Fleet) { f.Service = bimodalWork }, 1, 50, 500)
	add("bimodal_sharing", func(f *Fleet) { f.Service, f.Sharing = bimodalWork, true }, 1, 50, 500)
	for _, b := range []int{1, 50, 500} {
		f := FleetA(b)
		rate := f.Scenario("").Arrivals.Rate
		f.Service = paretoWork
		s := f.Scenario(fmt.Sprintf("pareto/B=%d", b))
		s.Arrivals.Rate = rate // what the cap cuts off does not come back as traffic
		out = append(out, againstBound(s))
	}
	add("load50", load(0.5), 1, 50, 500)
	add("load90", load(0.9), 1, 50, 500)
	add("load95", load(0.95), 1, 50, 500)
	add("two", size(2, 1), 1, 12, 120)
	add("three", size(3, 1), 1, 20, 200)
	add("thirty", size(30, 3), 1, 190, 1900)
	add("sixty_four", func(f *Fleet) { f.Servers, f.Slow, f.Length = 64, 8, 40*time.Second }, 400, 4000)
	add("three_hundred", size(300, 30), 1, 1875)
	return out
}

func againstBound(s Scenario) Case {
	return Case{
		Name: s.Name, Scenario: s, Against: Policy{Name: "jsed", Bound: ShortestDelay{}},
		Figures: []Figure{p99, relative(p99), p999, relative(p999), mean},
	}
}
