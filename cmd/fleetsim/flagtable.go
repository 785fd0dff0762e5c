package main

import (
	"fmt"
	"strings"
)

// flagDef is one flag: what -h says of it and what it is if nobody sets it.
type flagDef struct {
	name, arg, initial, help string
	repeated, boolean        bool
}

// flagGroup is a part of -h.
type flagGroup struct {
	title string
	flags []flagDef
}

const (
	lawHelp = "exponential:MEAN, fixed:TIME, uniform:LOW,HIGH, lognormal:MEDIAN,SIGMA, bimodal:SHORT,LONG,SHARE, " +
		"pareto:LEAST,ALPHA,CAP or quantiles:PART=TIME,PART=TIME,…; a name alone is its usual shape with a mean of 10 ms"
	whoHelp = "first=N and last=N say which endpoints, at=K the one; last=1 if nothing does"
)

// flagGroups are all flags, in the order of -h.
var flagGroups = []flagGroup{
	{"What to run", []flagDef{
		{name: "preset", arg: "NAME", help: "a fleet with its load and its incident, which further flags change; list shows them all"},
		{name: "policies", arg: "LIST", initial: "round_robin p2c default", help: "what to compare, up to 6, separated by spaces or commas: names " +
			"(a wrong one lists them), p2c being two choices by requests in flight; or the JSON of a policy or of a whole config, such as " +
			`{"p2c": {"choices": 3}}`},
		{name: "bound", arg: "NAME", initial: "jsed", help: "what is measured against: jsed, the shortest expected delay, or jsq, the shortest " +
			"queue, by somebody who sees every server as it is; or none; with -arrivals closed it bounds nothing, and is called a reference"},
		{name: "duration", arg: "D", initial: "60s", help: "how long requests arrive, 1ms to 1000h; the preset's times stretch with it"},
		{name: "warmup", arg: "D", initial: "10s", help: "how much of the beginning is left out of figures over the whole run"},
		{name: "seeds", arg: "N", initial: "5", help: "how many runs each figure is the mean of, 1 to 1000"},
		{name: "seed", arg: "N", initial: "1", help: "the first run's seed; the others count on from there"},
	}},
	{"The fleet", []flagDef{
		{name: "endpoints", arg: "N", initial: "8", help: "how many there are, 1 to 10000"},
		{name: "concurrency", arg: "N", initial: "1", help: "how many requests an endpoint works on at once; further ones wait in order; 0 is any number"},
		{name: "sharing", boolean: true, initial: "false", help: "endpoints share their concurrency among all requests they have, instead of letting them wait"},
		{name: "speeds", arg: "LIST", initial: "none", help: "speeds of the last endpoints, the others having 1: 3x0.6 or 1x1/3,2x1/2; or none"},
		{name: "service", arg: "LAW", initial: "exponential", help: "how long the work of a request takes: " + lawHelp},
		{name: "mean", arg: "D", help: "stretches the law to this mean"},
	}},
	{"The load", []flagDef{
		{name: "utilisation", arg: "F", initial: "0.7", help: "arriving work over the capacity of all endpoints without incidents, 0.001 to 10, or in percent; 1 and more overload them"},
		{name: "rate", arg: "R", help: "requests a second, in place of -utilisation"},
		{name: "arrivals", arg: "KIND", initial: "poisson", help: "poisson, even, bursts (poisson in the first -on of each -period), or closed (-users who each wait for the answer)"},
		{name: "on", arg: "D", initial: "100ms", help: "length of a burst"},
		{name: "period", arg: "D", initial: "1s", help: "from burst to burst"},
		{name: "users", arg: "N", initial: "50", help: "of a closed loop, 1 to 100000"},
		{name: "think", arg: "D", initial: "0s", help: "how long a user waits between an answer and the next request"},
		{name: "streams", arg: "F", initial: "0", help: "part of the requests that are held for -stream-time, 0 to 1"},
		{name: "stream-time", arg: "LAW", initial: "uniform:20s,40s", help: "how long they are held; see -service"},
		{name: "stream-kind", arg: "KIND", initial: "stream", help: "what clients know of them: stream, unary (they are told wrong), or unknown"},
	}},
	{"Incidents (each flag may be repeated; FROM-UNTIL such as 20s-40s or 20s-, the middle third of -duration if nothing is said; none takes away a preset's)", []flagDef{
		{name: "slow", arg: "SPEC", repeated: true, initial: "none", help: "FROM-UNTIL,by=10,to=1: work takes 10 times as long, changing to 1 in a straight line if to is given; " + whoHelp},
		{name: "fail", arg: "SPEC", repeated: true, initial: "none", help: "FROM-UNTIL,after=1ms,share=1,as=failure: answers with a failure after a millisecond, all requests or a share of them, " +
			"as failure, unreached or overload"},
		{name: "hang", arg: "SPEC", repeated: true, initial: "none", help: "FROM-UNTIL: does not answer; see -timeout"},
		{name: "cold", arg: "SPEC", repeated: true, initial: "none", help: "FROM-UNTIL,by=10,to=1: joins at FROM, and is as slow as -slow says until UNTIL"},
		{name: "drain", arg: "SPEC", repeated: true, initial: "none", help: "FROM-UNTIL: has the weight 0"},
	}},
	{"The clients", []flagDef{
		{name: "clients", arg: "N", initial: "50", help: "how many, each with a balancer that knows only its own requests, 1 to 10000"},
		{name: "delay", arg: "D", initial: "500µs", help: "of the network, one way, 0 to 1h"},
		{name: "timeout", arg: "D", initial: "0s", help: "when clients give up, while the endpoint works on; 0 is never"},
		{name: "refresh", arg: "D", initial: "0s", help: "time between updates of the clients' lists that change nothing; 0 is none"},
	}},
	{"What comes out", []flagDef{
		{name: "html", arg: "FILE", help: "also writes a page with charts and all figures, which needs nothing else"},
		{name: "sweeps", boolean: true, initial: "true", help: "with -html, further runs at other loads and other numbers of clients; -sweeps=false skips them"},
		{name: "sweep-seeds", arg: "N", initial: "0", help: "how many runs each of their points is the mean of, up to 1000; 0 chooses 1 to 3"},
		{name: "step", arg: "D", initial: "0s", help: "of the charts over time, at most 500 of them; 0 chooses one"},
	}},
}

const usageHead = `usage: fleetsim [flags]

Lets the same requests arrive in virtual time for each policy, at clients that
balance them over a fleet, and compares latencies, errors and shares.

`

const usageTail = `
Examples

  One backend of eight gets slow for a while; as a page with charts:
    fleetsim -preset slow-backend -html out.html

  A fleet of 20 at 80 % load, three of them half as fast, 200 clients:
    fleetsim -endpoints 20 -speeds 3x1/2 -utilisation 0.8 -clients 200

  Do three choices beat two while one backend fails a third of its requests?
    fleetsim -preset fail-fast -fail 20s-40s,share=0.3 \
      -policies 'p2c {"p2c":{"choices":2}} {"p2c":{"choices":3}} default'
`

// usage returns what -h prints.
func usage() string {
	var b strings.Builder
	b.WriteString(usageHead)
	for _, g := range flagGroups {
		fmt.Fprintf(&b, "%s\n", wrap(g.title))
		for _, f := range g.flags {
			b.WriteString(f.usage())
		}
		b.WriteString("\n")
	}
	return b.String() + usageTail[1:]
}

// usage returns the flag's lines of -h.
func (f flagDef) usage() string {
	head := "  -" + f.name
	if f.arg != "" {
		head += " " + f.arg
	}
	text := f.help
	if f.initial != "" && f.initial != "none" && !f.boolean {
		text += fmt.Sprintf(" (%s)", f.initial)
	}
	const margin = 22
	lines := strings.Split(strings.TrimSpace(wrapTo(text, 78-margin)), "\n")
	var b strings.Builder
	if len(head) >= margin-1 {
		b.WriteString(head + "\n" + strings.Repeat(" ", margin))
	} else {
		fmt.Fprintf(&b, "%-*s", margin, head)
	}
	b.WriteString(strings.Join(lines, "\n"+strings.Repeat(" ", margin)))
	b.WriteString("\n")
	return b.String()
}
