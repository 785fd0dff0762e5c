package main

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/picker"
)

// simulated are the presets that are scenarios of the simulator's.
var simulated = map[string]sim.Scenario{
	"slow-backend":     sim.SlowPulse(50),
	"fail-fast":        sim.FailPulse(50),
	"black-hole":       sim.BlackHole(20),
	"fail-and-recover": sim.S3(),
	"cascade":          sim.BadDeploy(3, 0.8, 20),
	"bad-deploy":       sim.BadDeploy(3, 0.8, 20),
	"hung-backend":     sim.S4(),
	"cold-start":       sim.S2(),
	"recovery":         sim.S10(),
	"thin-clients":     sim.FleetA(2000).Scenario(""),
	"eight-backends":   sim.FleetA(50).Scenario(""),
	"stale-table":      sim.EightServers(1),
	"heterogeneous":    sim.FiftyQueues(0.6, 5),
	"fifty-queues":     sim.FiftyQueues(0.9, 0),
	"two-generations":  sim.TwoGenerations(20),
	"half-slow":        sim.S6(20),
	"small-fleet":      sim.S11(3),
	"linkerd":          sim.S1(),
	"refreshed-list":   sim.S13(),
	"long-streams":     sim.S9("", picker.Unary, picker.Stream),
	"unmarked-streams": sim.S9("", picker.UnknownKind, picker.UnknownKind),
}

// scenarioText writes what matters of a scenario in a form of its own: each server with its
// capacity and phases, without the order in which they stand, traffic, clients and times.
func scenarioText(s sim.Scenario) string {
	var b strings.Builder
	kinds := map[string]int{}
	for _, v := range s.Servers {
		speed, law := v.Speed, v.Service
		if speed == 0 {
			speed = 1
		}
		if law == nil {
			law = s.Service
		}
		var text strings.Builder
		fmt.Fprintf(&text, "%d workers, sharing %v, speed %.6g, %v", v.Workers, v.Sharing, speed, law)
		for _, p := range v.Phases {
			p.Until = min(p.Until, time.Hour)
			fmt.Fprintf(&text, ", %+v", p)
		}
		kinds[text.String()]++
	}
	fmt.Fprintln(&b, kinds)
	shares := map[string]string{}
	for _, c := range s.Classes {
		shares[c.Name] = fmt.Sprintf("%.3g %v", c.Share, c.Kind)
	}
	if held := classOf(s, "held"); held != nil {
		shares["law of held"] = fmt.Sprint(held.Service)
		shares["law of short"] = fmt.Sprint(s.Service)
		if short := classOf(s, "short"); short.Service != nil {
			shares["law of short"] = fmt.Sprint(short.Service)
		}
		b.Reset() // those laws take the place of the servers'
		fmt.Fprintln(&b, len(s.Servers))
	}
	fmt.Fprintln(&b, shares)
	rate := math.Round(s.Arrivals.Rate*1e6) / 1e6
	fmt.Fprintln(&b, s.Arrivals.Kind, rate, s.Arrivals.Users, max(s.Balancers, 1), s.Delay, s.Timeout, s.Refresh)
	if s.Requests == 0 {
		fmt.Fprintln(&b, s.Length, s.WarmUp)
	}
	return b.String()
}

func classOf(s sim.Scenario, name string) *sim.Class {
	for i := range s.Classes {
		if s.Classes[i].Name == name {
			return &s.Classes[i]
		}
	}
	return nil
}

func TestPresetsAreTheSimulatorsScenarios(t *testing.T) {
	for name, want := range simulated {
		s, err := parseFlags([]string{"-preset", name})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := s.fleet()
		if want.Requests > 0 {
			// The flags have no number of requests; the time that they take is near enough.
			length := time.Duration(float64(want.Requests) / want.Arrivals.Rate * 1e9)
			if off := got.Length - length; off < -2*time.Second || off > 2*time.Second {
				t.Errorf("%s lasts %v, want %v", name, got.Length, length)
			}
			got.Requests = want.Requests
		}
		if scenarioText(got) != scenarioText(want) {
			t.Errorf("%s is\n%s\nwant\n%s", name, scenarioText(got), scenarioText(want))
		}
	}
}

func TestEveryPresetRuns(t *testing.T) {
	for _, p := range presets {
		// Large ones with fewer clients: building thousands of pools is not what is tested.
		args := []string{"-preset", p.name, "-seeds", "1", "-duration", "200ms", "-clients", "3"}
		var out, errs strings.Builder
		if status := run(args, &out, &errs); status != 0 {
			t.Errorf("%s: status %d\n%s", p.name, status, errs.String())
			continue
		}
		if !strings.Contains(out.String(), "policy") || strings.Contains(out.String(), "NaN") {
			t.Errorf("%s:\n%s", p.name, out.String())
		}
	}
}

func TestTheListHasALineForEachPreset(t *testing.T) {
	list := presetList()
	for _, p := range presets {
		if !strings.Contains(list, "  "+p.name+" ") || p.line == "" || strings.HasSuffix(p.line, ".") {
			t.Errorf("%s: %q", p.name, p.line)
		}
		if s, err := parseFlags([]string{"-preset", p.name}); err != nil {
			t.Errorf("%s: %v", p.name, err)
		} else if s.duration != p.duration() {
			t.Errorf("%s lasts %v and says %v", p.name, s.duration, p.duration())
		}
	}
	for line := range strings.Lines(list) {
		if len([]rune(line)) > 81 {
			t.Errorf("too wide: %s", line)
		}
	}
}
