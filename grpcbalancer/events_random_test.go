package grpcbalancer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/evenkeel/evenkeel/internal/testcost"
	"github.com/evenkeel/evenkeel/picker"
)

var roundRobin = picker.RoundRobin{}

// event is something that may happen to a policy. Its number says what exactly, whatever the state of things is: any part of a
// sequence of events is a sequence, too.
type event struct {
	kind eventKind
	n    uint64
}

type eventKind int

const (
	newList eventKind = iota
	newConfig
	badConfig
	resolverFails
	exitIdle
	connection // the next state of one, in an order that the channel keeps to
	healthCheck
	begin // an attempt
	end
	deliver // some of what is queued
	rest    // all of it, and then everything is compared
	pass    // time
	closing

	eventKindCount
)

// often is how often each comes.
var often = [eventKindCount]int{newList: 8, newConfig: 3, badConfig: 1, resolverFails: 2, exitIdle: 2, connection: 30,
	healthCheck: 8, begin: 12, end: 10, deliver: 15, rest: 12, pass: 6, closing: 1}

func (e event) String() string {
	names := [eventKindCount]string{"list", "config", "bad config", "resolver error", "exit idle", "connection", "health",
		"begin", "end", "deliver", "rest", "pass", "close"}
	return fmt.Sprintf("%s %d", names[e.kind], e.n)
}

// anyEvents returns n random events; the policy is closed near the end, if at all.
func anyEvents(rnd *rand.Rand, n int) []event {
	total := 0
	for _, o := range often {
		total += o
	}
	list := make([]event, n)
	for i := range list {
		at := rnd.IntN(total)
		for kind, o := range often {
			if at -= o; at < 0 {
				list[i] = event{eventKind(kind), rnd.Uint64() >> 32}
				break
			}
		}
		if list[i].kind == closing && i < n*3/4 {
			list[i].kind = rest
		}
	}
	return list
}

// eventConfigs are what the config changes between. With round robin everybody is picked.
var eventConfigs = []string{
	`{"policy": "round_robin", "outlier": {"mode": "off"}}`,
	`{"policy": "round_robin", "outlier": {"mode": "off"}, "limit": {"disabled": true}}`,
	`{"limit": {"disabled": true}}`,
	`{"policy": {"p2c": {"signal": "in_flight"}}, "limit": {"disabled": true}}`,
	`{"policy": "maglev", "limit": {"disabled": true}}`,
	`{"policy": "round_robin", "outlier": {"mode": "off"}, "limit": {"disabled": true}, "subset": {"size": 4, "seed": 3}}`,
	`{"policy": "round_robin", "outlier": {"mode": "off"}, "subset": {"size": 2, "seed": 9, "min_available": 1}}`,
	`{"policy": "round_robin", "outlier": {"mode": "off"}, "slow_start": {}, "reports": {"weights": "listed"}, "limit": {"disabled": true}}`,
}

// universe are the endpoints that there may be: some of several addresses, some that share one with another.
var universe = [][]string{{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, {"[::1]:1", "10.0.0.1:1"}, {"[::2]:1", "10.0.0.2:1", "10.0.0.3:1"}, {"a", "b"}}

// The whole policy over gRPC's pick_first under all that a channel may do, in random order and in every phase: after each rest it
// is compared with an oracle, and at each moment it publishes and picks nobody whose connection is not there. What goes wrong is
// shown by the fewest events that do it.
func TestPolicyUnderAnyOrderOfEvents(t *testing.T) {
	seeds, length := uint64(400), 300
	if testcost.Race || testing.Short() {
		seeds = 25
	}
	for seed := range seeds {
		events := anyEvents(rand.New(rand.NewPCG(seed, 1)), length)
		at, err := runEvents(t, seed, events, 0)
		if err != nil {
			events = fewest(events[:min(at+1, length)], func(some []event) bool {
				_, err := runEvents(t, seed, some, 0)
				return err != nil
			})
			_, again := runEvents(t, seed, events, 0)
			t.Fatalf("seed %d: %v\n%d events do it: %v\n%v", seed, err, len(events), events, again)
		}
	}
}

// The same with calls that begin and end at any time meanwhile. Run with -race.
func TestPolicyUnderAnyOrderOfEventsWhileCallsAreMade(t *testing.T) {
	for seed := range uint64(25) {
		events := anyEvents(rand.New(rand.NewPCG(seed, 2)), 200)
		if at, err := runEvents(t, seed, events, 2); err != nil {
			t.Fatalf("seed %d, event %d: %v", seed, at, err)
		}
	}
}

// runEvents runs events in a world of their own, with so many callers beside each.
func runEvents(t *testing.T, seed uint64, events []event, callers int) (at int, err error) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed)
		w.callers = callers
		at, err = w.run(events)
	})
	return at, err
}

// fewest returns a part of events that still goes wrong, and of which, after a few hundred attempts, little can be left out.
func fewest(events []event, wrong func([]event) bool) []event {
	attempts := 0
	for size := len(events) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(events) && attempts < 300; attempts++ {
			if some := slices.Concat(events[:at], events[at+size:]); wrong(some) {
				events = some
			} else {
				at += size
			}
		}
	}
	return events
}
