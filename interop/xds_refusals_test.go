package interop

import (
	"context"
	"strings"
	"testing"

	roundrobin "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// A field that a newer control plane knows is no reason to stop.
func TestXDSUnknownFieldIsServed(t *testing.T) {
	backends := startBackends(t, 2)
	plane := startControlPlane(t, custom(t, "evenkeel", `{"policy": "weighted_round_robin", "of_a_later_year": {"x": [1, null]}}`))
	plane.set(t, zone("z", each(backends, 1, 3)...))
	load := keepCalling(t, calling(plane.dial(t)))
	settle(t, "weights 1 and 3", 400, 0.02, []float64{0.25, 0.75}, backends...)
	load.stop()
	load.check(t)
	if said := plane.refused.Load(); said != nil {
		t.Errorf("refused: %s", *said)
	}
}

// gRPC goes on to the next policy of the list for a name that it does not know.
func TestXDSPolicyIsTakenAfterOneThatTheClientLacks(t *testing.T) {
	backends := startBackends(t, 2)
	plane := startControlPlane(t, custom(t, "nobody.has.this", `{"policy": 7}`),
		custom(t, "evenkeel", `{"policy": "weighted_round_robin"}`), &roundrobin.RoundRobin{})
	plane.set(t, zone("z", each(backends, 1, 3)...))
	load := keepCalling(t, calling(plane.dial(t)))
	settle(t, "weights 1 and 3", 400, 0.02, []float64{0.25, 0.75}, backends...)
	load.stop()
	load.check(t)
}

// A wrong value, or with strict an unknown field, is refused with a text that names it, which the
// control plane sees; the list's next policy is not tried.
func TestXDSWrongConfigIsRefusedByName(t *testing.T) {
	for config, want := range map[string]string{
		`{"policy": {"p2c": {"choices": 11}}}`:  "choices",
		`{"policy": {"p2c": {"choices": 2.5}}}`: "choices",
		`{"strict": true, "polcy": "random"}`:   "polcy",
		`{"drain_timeout": 10}`:                 "drain_timeout",
	} {
		for _, wrap := range []func(*testing.T, proto.Message) proto.Message{
			func(_ *testing.T, m proto.Message) proto.Message { return m },
			func(t *testing.T, m proto.Message) proto.Message { return perLocality(t, m) },
		} {
			backends := startBackends(t, 1)
			plane := startControlPlane(t, wrap(t, custom(t, "evenkeel", config)), &roundrobin.RoundRobin{})
			plane.set(t, zone("z", each(backends, 1)...))
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			err := calling(plane.dial(t))(ctx)
			cancel()
			if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the call ends with %v, which is to name %s", config, err, want)
			}
			eventually(t, "the control plane hears of it", func() bool { return plane.refused.Load() != nil })
			if said := *plane.refused.Load(); !strings.Contains(said, want) {
				t.Errorf("%s: the control plane is told %q, which is to name %s", config, said, want)
			}
		}
	}
}

// What comes later and is wrong leaves the last good config in force, and so do its endpoints.
func TestXDSWrongConfigLaterChangesNothing(t *testing.T) {
	backends := startBackends(t, 2)
	good := custom(t, "evenkeel", `{"policy": "weighted_round_robin"}`)
	plane := startControlPlane(t, good)
	endpoints := zone("z", each(backends, 1, 3)...)
	plane.set(t, endpoints)
	load := keepCalling(t, calling(plane.dial(t)))
	settle(t, "weights 1 and 3", 400, 0.02, []float64{0.25, 0.75}, backends...)
	plane.policies = []proto.Message{custom(t, "evenkeel", `{"policy": "the_best"}`)}
	plane.set(t, endpoints)
	eventually(t, "the client refuses it", func() bool { return plane.refused.Load() != nil })
	settle(t, "after the refusal", 400, 0.02, []float64{0.25, 0.75}, backends...)
	plane.policies = []proto.Message{custom(t, "evenkeel", `{"policy": "round_robin"}`)}
	plane.set(t, endpoints)
	settle(t, "a good one again", 400, 0.02, []float64{0.5, 0.5}, backends...)
	load.stop()
	load.check(t)
}
