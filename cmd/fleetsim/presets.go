package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// preset is a set of flags by a name. Where it is a scenario of the simulator's, a test
// holds that the flags say the same.
type preset struct {
	name, line string
	text       string // flags and values in turn; no value has a blank but those of -policies, joined by commas
}

// flags returns pairs of names and values.
func (p preset) flags() [][2]string {
	fields := strings.Fields(p.text)
	out := make([][2]string, 0, len(fields)/2)
	for i := 0; i+1 < len(fields); i += 2 {
		out = append(out, [2]string{strings.TrimPrefix(fields[i], "-"), fields[i+1]})
	}
	return out
}

// duration returns the preset's own.
func (p preset) duration() time.Duration {
	for _, pair := range p.flags() {
		if pair[0] == "duration" {
			if d, err := time.ParseDuration(pair[1]); err == nil {
				return d
			}
		}
	}
	return defaultDuration
}

// Flags that several presets share: the eight servers that most figures are about, and
// fleets whose latency does not depend on load.
const (
	eight     = " -endpoints 8 -duration 60s "
	anyNumber = " -concurrency 0 -clients 1 -delay 0s -warmup 0s "
	// failingThree is the bad deploy that can become an outage which outlives its cause.
	failingThree = " -endpoints 10 -concurrency 1 -service exponential:10ms -rate 800 -clients 20 -delay 0s -timeout 1s -duration 100s " +
		"-warmup 0s -fail 20s-40s,after=1ms,first=3 "
)

var presets = []preset{
	// Incidents.
	{"slow-backend", "one of 8 backends takes three times as long for a third of the time", eight +
		"-rate 513.33333333333 -warmup 0s -slow 20s-40s,by=3"},
	{"fail-fast", "one of 8 backends answers with failures after a millisecond for a third of the time", eight +
		"-rate 513.33333333333 -warmup 0s -fail 20s-40s,after=1ms"},
	{"partial-failure", "one of 8 backends fails three requests of ten for a third of the time", eight +
		"-rate 513.33333333333 -warmup 0s -fail 20s-40s,after=5ms,share=0.3"},
	{"black-hole", "one of 10 backends fails everything at once, as a process without its database does", anyNumber +
		"-endpoints 10 -service exponential:50ms -rate 1000 -duration 80s -clients 20 -fail 0s-,after=1ms,first=1"},
	{"fail-and-recover", "one of 10 fails fast for half a minute; then what share it gets back", anyNumber +
		"-endpoints 10 -service exponential:20ms -rate 2000 -duration 90s -fail 10s-40s,after=1ms,first=1"},
	{"hung-backend", "one of 10 does not answer for half a minute; clients wait for a second", anyNumber +
		"-endpoints 10 -service exponential:20ms -rate 2000 -duration 60s -timeout 1s -hang 10s-40s,first=1"},
	{"bad-deploy", "3 of 10 backends fail fast, and the others cannot carry the load: what each way of ejecting makes of it", failingThree +
		"-policies p2c,envoy_uncapped,envoy_30,envoy,guarded_p2c,default -bound none"},
	{"bad-deploy-with-room", "3 of 10 busy backends fail fast at once, and the others can carry the load", "-endpoints 10 -concurrency 4 -utilisation 0.6 -clients 20 -timeout 2s " +
		"-duration 60s -warmup 0s -fail 20s-40s,after=5ms,last=3"},
	{"cascade", "the same bad deploy: what failures, ejection and a limit change by themselves", failingThree +
		"-policies round_robin,guarded_round_robin,unguarded,ejection,default"},
	{"overload-answers", "one of 8 backends turns away half of its requests for a while", eight +
		"-rate 513.33333333333 -warmup 0s -fail 20s-40s,after=1ms,share=0.5,as=overload"},
	{"cold-start", "a backend joins ten warm ones, ten times slower until it is warm", "-endpoints 11 -concurrency 16 -clients 1 -delay 0s " +
		"-service exponential:20ms -rate 2000 -duration 40s -warmup 0s -timeout 2s -cold 10s-30s,by=10"},
	{"recovery", "one of 10 is ten times slower for a while; then how soon it gets its share back", "-endpoints 10 -concurrency 8 " +
		"-clients 1 -delay 0s -service exponential:20ms -rate 2500 -duration 60s -warmup 0s -timeout 2s -slow 10s-30s,by=10,first=1"},
	{"rolling-drain", "three of 9 backends are drained one after the other", "-endpoints 9 -concurrency 4 -utilisation 0.7 -duration 60s " +
		"-warmup 0s -drain 10s-25s,at=7 -drain 25s-40s,at=8 -drain 40s-55s,at=9"},
	{"overload", "everything is fine but the load, which is 1.1", "-endpoints 10 -concurrency 4 -utilisation 1.1 -duration 30s -warmup 0s -timeout 1s"},

	// Fleets.
	{"thin-clients", "2,000 clients who each see little of 8 backends, one of them three times slower", eight +
		"-speeds 1x1/3 -utilisation 0.7 -warmup 10s -clients 2000"},
	{"eight-backends", "8 backends, one of them three times slower, and 50 clients", eight + "-speeds 1x1/3 -utilisation 0.7 -warmup 10s -clients 50"},
	{"stale-table", "everybody goes by one table of loads that is 100 ms old", eight + "-speeds 1x1/3 -utilisation 0.7 -warmup 0s -clients 1 -delay 0s " +
		"-policies least_table@100ms,p2c_table@100ms,p2c,default"},
	{"heterogeneous", "5 of 50 backends are three times slower", "-endpoints 50 -speeds 5x1/3 -rate 3000 -duration 67s -warmup 7s -clients 1 -delay 0s"},
	{"fifty-queues", "50 equal backends at 90 % load", "-endpoints 50 -rate 4500 -duration 45s -warmup 4500ms -clients 1 -delay 0s"},
	{"two-generations", "3 of 12 backends are of an older kind at 83 % load", "-endpoints 12 -speeds 3x0.6 -service exponential:1ms -rate 9000 " +
		"-duration 20s -warmup 4s -clients 20 -delay 0s"},
	{"half-slow", "5 of 10 backends take twice as long at 80 % load", "-endpoints 10 -concurrency 4 -speeds 5x0.5 -rate 2400 -clients 20 -delay 0s " +
		"-duration 60s -warmup 10s"},
	{"small-fleet", "3 backends of eight workers at 75 % load", "-endpoints 3 -concurrency 8 -rate 1800 -duration 120s -warmup 0s -clients 1 -delay 0s " +
		"-policies round_robin,p2c,least,default"},
	{"large-fleet", "200 backends, 20 of them three times slower, and 1,250 clients", "-endpoints 200 -speeds 20x1/3 -utilisation 0.7 -clients 1250 " +
		"-duration 10s -warmup 3s -seeds 2"},

	// Requests.
	{"linkerd", "latencies that do not depend on load, one of 11 backends ten times slower for half a minute", anyNumber +
		"-endpoints 11 -service quantiles:0=164.1ms,0.5=167.5ms,0.9=176.7ms,0.99=192.3ms,0.999=198.8ms,1=200ms " +
		"-arrivals even -rate 1000 -duration 60s -slow 15s-45s,by=10,first=1"},
	{"refreshed-list", "one of 11 backends ten times slower for half a minute, and a new list every 5 s that changes nothing", anyNumber +
		"-endpoints 11 -service quantiles:0=164.1ms,0.5=167.5ms,0.9=176.7ms,0.99=192.3ms,0.999=198.8ms,1=200ms " +
		"-rate 1000 -duration 60s -refresh 5s -slow 15s-45s,by=10,first=1"},
	{"long-streams", "one request of ten is a stream of half a minute", anyNumber +
		"-endpoints 10 -service exponential:20ms -streams 0.1 -stream-time uniform:20s,40s -rate 500 -duration 120s"},
	{"unmarked-streams", "one request of ten is a stream of half a minute, and clients do not know which", anyNumber +
		"-endpoints 10 -service exponential:20ms -streams 0.1 -stream-time uniform:20s,40s -stream-kind unknown -rate 500 -duration 120s"},
	{"closed-loop", "50 users who wait for their answers, and backends from very fast to very slow", anyNumber +
		"-endpoints 10 -speeds 1x10,4x1,4x0.1,1x0.01 -service uniform:0s,10ms -arrivals closed -users 50 -duration 20s"},
	{"few-requests", "two requests a second for an hour, one of 5 backends fifty times slower", anyNumber +
		"-endpoints 5 -speeds 1x0.02 -service uniform:16ms,24ms -rate 2 -duration 1h"},
	{"bursts", "the load comes in a tenth of each second", "-endpoints 10 -concurrency 16 -utilisation 0.1 -arrivals bursts -on 100ms -period 1s " +
		"-duration 60s -warmup 10s"},
	{"heavy-tail", "rarely, a request takes four hundred times as long", eight + "-speeds 1x1/3 -service bimodal:2ms,800ms,0.005 -utilisation 0.7 -warmup 10s"},
}

// presetList returns what -preset list prints.
func presetList() string {
	width := 0
	for _, p := range presets {
		width = max(width, len(p.name))
	}
	var b strings.Builder
	b.WriteString("Presets (each is a set of flags; further flags change it):\n\n")
	for _, p := range append(slices.Clip(presets), preset{name: subsetsPreset, line: subsetsLine}) {
		lines := strings.Split(strings.TrimSpace(wrapTo(p.line, 76-width)), "\n")
		fmt.Fprintf(&b, "  %-*s  %s\n", width, p.name, strings.Join(lines, "\n"+strings.Repeat(" ", width+4)))
	}
	return b.String()
}
