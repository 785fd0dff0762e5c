package interop

import (
	"math/rand/v2"
	"slices"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
)

// rollout is a service under load whose endpoints a control plane changes.
type rollout struct {
	plane *controlPlane
	load  *traffic
}

func startRollout(t *testing.T, policy proto.Message, localities ...locality) *rollout {
	t.Helper()
	plane := startControlPlane(t, policy)
	plane.set(t, localities...)
	return &rollout{plane, keepCalling(t, calling(plane.dial(t)))}
}

// to publishes the localities and waits for these shares.
func (r *rollout) to(t *testing.T, what string, backends []*backend, want []float64, localities ...locality) {
	t.Helper()
	r.plane.set(t, localities...)
	settle(t, what, 400, 0.03, want, backends...)
}

func zone(name string, endpoints ...xdsEndpoint) locality {
	return locality{zone: name, weight: 1, endpoints: endpoints}
}

// Whoever leaves, drains, joins, weighs more or moves to another locality costs no call, and calls that
// are under way at who leaves come to their end.
func TestXDSChangesUnderLoadLoseNoCall(t *testing.T) {
	policy := custom(t, "evenkeel", `{"policy": "weighted_round_robin"}`)
	for name, policy := range map[string]proto.Message{"alone": policy, "under wrr_locality": perLocality(t, policy)} {
		t.Run(name, func(t *testing.T) {
			list := startBackends(t, 3)
			a, b, c := xdsEndpoint{list[0], 1, core.HealthStatus_UNKNOWN}, xdsEndpoint{list[1], 1, core.HealthStatus_HEALTHY}, xdsEndpoint{list[2], 1, 0}
			r := startRollout(t, policy, zone("z", a, b))
			settle(t, "two", 200, 0.03, []float64{0.5, 0.5, 0}, list...)
			r.to(t, "one joins", list, []float64{1. / 3, 1. / 3, 1. / 3}, zone("z", a, b, c))
			c.weight = 3
			r.to(t, "one weighs more", list, []float64{0.2, 0.2, 0.6}, zone("z", a, b, c))

			r.drains(t, list, &a, zone("z", b, c))
			r.to(t, "it is back", list, []float64{0.2, 0.2, 0.6}, zone("z", a, b, c))

			r.to(t, "one leaves", list, []float64{0.25, 0, 0.75}, zone("z", a, c))
			list[1].stop()
			r.to(t, "one moves", list, []float64{0.5, 0, 0.5}, zone("z", a), zone("y", c))
			r.to(t, "both have moved", list, []float64{0.25, 0, 0.75}, zone("y", a, c))
			r.load.stop()
			r.load.check(t)
			if n := list[2].conns.Load(); name == "alone" && n != 1 {
				t.Errorf("the endpoint that moved between localities of one policy has had %d connections", n)
			}
		})
	}
}

// drains has e drain while a call is under way there.
func (r *rollout) drains(t *testing.T, all []*backend, e *xdsEndpoint, rest locality) {
	t.Helper()
	release := e.hold()
	defer release()
	eventually(t, "a call is held", func() bool { return e.holding.Load() > 0 })
	draining := *e
	draining.health = core.HealthStatus_DRAINING
	rest.endpoints = append([]xdsEndpoint{draining}, rest.endpoints...)
	r.to(t, "one drains", all, []float64{0, 0.25, 0.75}, rest)
	if e.holding.Load() == 0 {
		t.Error("a call at the endpoint that drains was cut off")
	}
}

// Fifty lists in a row, each another part of the endpoints with other weights, in other localities, of other
// health, and each published while the one before it is being carried out.
func TestXDSRandomChangesUnderLoadLoseNoCall(t *testing.T) {
	policy := custom(t, "evenkeel", `{"policy": "round_robin"}`)
	for name, policy := range map[string]proto.Message{"alone": policy, "under wrr_locality": perLocality(t, policy)} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, 11))
			list := startBackends(t, 6)
			r := startRollout(t, policy, zone("a", each(list, 1, 1, 1, 1, 1, 1)...))
			for range 50 {
				zones := []locality{zone("a"), zone("b"), zone("c")}
				// One is always there; the others by chance.
				for i, b := range random.Perm(len(list)) {
					e := xdsEndpoint{list[b], 1 + random.Uint32N(9), core.HealthStatus_HEALTHY}
					if i > 0 {
						e.health = core.HealthStatus(random.IntN(4)) // two of which are to be used
					}
					if i > 0 && random.IntN(3) == 0 {
						continue
					}
					z := &zones[random.IntN(len(zones))]
					z.endpoints = append(z.endpoints, e)
				}
				for i := range zones {
					zones[i].weight = 1 + random.Uint32N(5)
				}
				r.plane.set(t, zones...)
				before := r.load.calls.Load()
				eventually(t, "calls end", func() bool { return r.load.calls.Load() > before+20 })
			}
			before := make([]int64, len(list))
			for i, b := range list {
				before[i] = b.calls.Load()
			}
			r.plane.set(t, zone("a", each(list, 1, 1, 1, 1, 1, 1)...))
			eventually(t, "all are called in the end", func() bool {
				for i, b := range list {
					if b.calls.Load() < before[i]+20 {
						return false
					}
				}
				return true
			})
			r.load.stop()
			r.load.check(t)
		})
	}
}

// A priority takes over when the one before it has no endpoint that can be used, and gives back.
func TestXDSPriorityTakesOverWhileTheFirstIsGone(t *testing.T) {
	backends := startBackends(t, 2)
	first, second := zone("z", each(backends[:1], 1)...), zone("y", each(backends[1:], 1)...)
	second.priority = 1
	r := startRollout(t, perLocality(t, custom(t, "evenkeel", "")), first, second)
	settle(t, "the first priority", 200, 0, []float64{1, 0}, backends...)
	sick := first
	sick.endpoints = slices.Clone(first.endpoints)
	sick.endpoints[0].health = core.HealthStatus_UNHEALTHY
	r.to(t, "the first is sick", backends, []float64{0, 1}, sick, second)
	r.to(t, "the first is well", backends, []float64{1, 0}, first, second)
	r.load.stop()
	r.load.check(t)
}

// What is in flight stays counted, and connections stay, when weights change: the policy's state belongs
// to the addresses.
func TestXDSReweightKeepsConnectionsAndCallsInFlight(t *testing.T) {
	backends := startBackends(t, 3)
	plane := startControlPlane(t, custom(t, "evenkeel", `{"policy": {"least": {"signal": "in_flight"}}, "limit": {"disabled": true}}`))
	plane.set(t, zone("z", each(backends, 1, 1, 1)...))
	call := calling(plane.dial(t))
	reachAll(t, call, backends...)
	release := backends[0].hold()
	ended := occupy(t, call, backends[0])
	for weight := range uint32(5) {
		plane.set(t, zone("z", each(backends, 1, 2+weight, 1)...))
		before := backends[0].calls.Load()
		for range 40 {
			if err := call(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := backends[0].calls.Load() - before; n != 0 {
			t.Errorf("after %d reweights: %d of 40 calls went to the endpoint that is busy", weight+1, n)
		}
	}
	release()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for i, b := range backends {
		if n := b.conns.Load(); n != 1 {
			t.Errorf("endpoint %d has had %d connections", i, n)
		}
	}
}
