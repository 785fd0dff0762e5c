package sim

import (
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

const second = time.Second

// equal returns n copies of v.
func equal(n int, v Server) []Server {
	out := make([]Server, max(n, 0))
	for i := range out {
		out[i] = v
	}
	return out
}

func exponential(mean time.Duration) Law { return Exponential{mean} }

// millis is a uniform law between numbers of milliseconds.
func millis(low, high int) Law {
	return Uniform{time.Duration(low) * time.Millisecond, time.Duration(high) * time.Millisecond}
}

// measuredLatencies is a service whose answers take 164 to 200 ms, as Finagle's own
// simulations have it.
var measuredLatencies = Quantiles{
	{0, 164100 * time.Microsecond}, {0.5, 167500 * time.Microsecond}, {0.9, 176700 * time.Microsecond},
	{0.99, 192300 * time.Microsecond}, {0.999, 198800 * time.Microsecond}, {1, 200 * time.Millisecond},
}

// S1 is eleven servers of steady latency, one of them ten times slower from 15 to 45 s,
// under 1,000 evenly spaced requests a second for a minute.
func S1() Scenario {
	s := Scenario{
		Name: "S1", Servers: equal(11, Server{}), Service: measuredLatencies,
		Arrivals: Arrivals{Kind: Even, Rate: 1000}, Length: 60 * second,
	}
	s.Servers[0].Phases = []Phase{{From: 15 * second, Until: 45 * second, Slow: 10}}
	return s
}

// S2 is ten warm servers that an eleventh joins at 10 s, ten times slower until 30 s.
func S2() Scenario {
	s := Scenario{
		Name: "S2", Servers: equal(11, Server{Workers: 16}), Service: exponential(20 * time.Millisecond),
		Arrivals: Arrivals{Rate: 2000}, Length: 40 * second, Timeout: 2 * second,
		Windows: []Span{{"cold", 10 * second, 30 * second}},
	}
	s.Servers[10].Phases = []Phase{
		{Until: 10 * second, Absent: true},
		{From: 10 * second, Until: 30 * second, Slow: 10},
	}
	return s
}

// tenAt2000 is ten servers of 20 ms and any concurrency, under 2,000 requests a second.
func tenAt2000(name string, length time.Duration) Scenario {
	return Scenario{
		Name: name, Servers: equal(10, Server{}), Service: exponential(20 * time.Millisecond),
		Arrivals: Arrivals{Rate: 2000}, Length: length,
	}
}

// S3 is ten servers, one of which answers with a failure after a millisecond from 10 to
// 40 s.
func S3() Scenario {
	s := tenAt2000("S3", 90*second)
	s.Servers[0].Phases = []Phase{{From: 10 * second, Until: 40 * second, Fail: picker.Failure, FailAfter: time.Millisecond}}
	s.Windows = []Span{{"failing", 10 * second, 40 * second}, {"after", 60 * second, 90 * second}}
	return s
}

// S4 is ten servers, one of which does not answer from 10 to 40 s.
func S4() Scenario {
	s := tenAt2000("S4", 60*second)
	s.Timeout = second
	s.Servers[0].Phases = []Phase{{From: 10 * second, Until: 40 * second, Hang: true}}
	return s
}

// S5 is an hour of two requests a second over five servers, the last of which takes a
// second for what takes the others 20 ms.
func S5() Scenario {
	s := Scenario{
		Name: "S5", Servers: equal(5, Server{}), Service: millis(16, 24),
		Arrivals: Arrivals{Rate: 2}, Length: time.Hour,
	}
	s.Servers[4].Service = Fixed{second}
	return s
}

// S6 is five fast and five slow servers of four workers at 80 % load.
func S6(balancers int) Scenario {
	s := Scenario{
		Name: fmt.Sprintf("S6/B=%d", balancers), Servers: equal(10, Server{Workers: 4}), Service: exponential(10 * time.Millisecond),
		Arrivals: Arrivals{Rate: 2400}, Balancers: balancers, Length: 60 * second, WarmUp: 10 * second,
	}
	for i := 5; i < 10; i++ {
		s.Servers[i].Speed = 0.5
	}
	return s
}

// S7 is a closed loop of fifty users over ten servers from fast to very slow.
func S7() Scenario {
	s := Scenario{
		Name: "S7", Servers: equal(10, Server{}), Requests: 50_000,
		Arrivals: Arrivals{Kind: Closed, Users: 50},
	}
	for i, m := range []int{1, 10, 10, 10, 10, 100, 100, 100, 100, 1000} {
		s.Servers[i].Service = millis(0, m)
	}
	return s
}

// S8 is ten clients and ten servers, the last of which is ten times slower.
func S8() Scenario {
	s := Scenario{
		Name: "S8", Servers: equal(10, Server{}), Service: millis(18, 22),
		Arrivals: Arrivals{Rate: 2000}, Balancers: 10, Length: 60 * second,
	}
	s.Servers[9].Speed = 0.1
	return s
}

// S9 is short requests beside one in ten that is held for half a minute. short and held
// are the kinds that the client gives them: Unary and Stream where it knows, twice
// UnknownKind or twice Unary where it does not.
func S9(variant string, short, held picker.Kind) Scenario {
	return Scenario{
		Name: "S9/" + variant, Servers: equal(10, Server{}),
		Classes: []Class{
			{Name: "short", Share: 0.9, Kind: short, Service: exponential(20 * time.Millisecond)},
			{Name: "held", Share: 0.1, Kind: held, Service: Uniform{20 * second, 40 * second}},
		},
		Arrivals: Arrivals{Rate: 500}, Length: 120 * second,
		Windows: []Span{{"steady", 60 * second, 120 * second}},
	}
}

// S10 is ten servers of eight workers, one of which is ten times slower from 10 to 30 s.
func S10() Scenario {
	s := Scenario{
		Name: "S10", Servers: equal(10, Server{Workers: 8}), Service: exponential(20 * time.Millisecond),
		Arrivals: Arrivals{Rate: 2500}, Length: 60 * second, Timeout: 2 * second,
		Windows: []Span{
			{"second 1", 30 * second, 31 * second}, {"second 5", 34 * second, 35 * second},
			{"second 20", 49 * second, 50 * second}, {"after", 30 * second, 60 * second},
		},
	}
	s.Servers[0].Phases = []Phase{{From: 10 * second, Until: 30 * second, Slow: 10}}
	return s
}

// S11 is a few servers of eight workers at 75 % load.
func S11(servers int) Scenario {
	return Scenario{
		Name: fmt.Sprintf("S11/n=%d", servers), Servers: equal(servers, Server{Workers: 8}),
		Service: exponential(10 * time.Millisecond), Arrivals: Arrivals{Rate: 600 * float64(servers)},
		Length: 120 * second,
	}
}

// S12 is 500 servers of one worker, in whose limit the mean sojourn under two choices is
// known: 1.947 services at load 0.8 and 2.614 at 0.9. A service takes 10 ms. requests is
// how many there are; those that arrive in the first 500 ms are left out, as the fleet
// starts empty.
func S12(load float64, requests int) Scenario {
	return Scenario{
		Name: fmt.Sprintf("S12/load=%g", load), Servers: equal(500, Server{Workers: 1}),
		Service: exponential(10 * time.Millisecond), Arrivals: Arrivals{Rate: load * 50_000},
		Requests: requests, WarmUp: second / 2,
	}
}

// S13 is S1 with random arrivals, and an update of the list every 5 s that changes
// nothing.
func S13() Scenario {
	s := S1()
	s.Name, s.Arrivals.Kind, s.Refresh = "S13", Poisson, 5*second
	return s
}

// leastInFlight sees all requests where there is one client.
var leastInFlight = Policy{Name: "least", Config: evenkeel.Config{Policy: picker.Least{}}}
