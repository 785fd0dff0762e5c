package interop

import (
	"context"
	"slices"
	"sync"
	"testing"

	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/proto"

	_ "github.com/evenkeel/evenkeel/grpcbalancer"
)

// each gives the backends these weights, in their order.
func each(backends []*backend, weights ...uint32) []xdsEndpoint {
	list := make([]xdsEndpoint, len(backends))
	for i, b := range backends {
		list[i] = xdsEndpoint{backend: b, weight: weights[i]}
	}
	return list
}

// calling is a call that fails at once where no endpoint can be used, and does not wait for ever.
func calling(client testgrpc.TestServiceClient) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		_, err := client.EmptyCall(ctx, &testgrpc.Empty{})
		return err
	}
}

// reachAll calls until each backend was called.
func reachAll(t *testing.T, call func(context.Context) error, backends ...*backend) {
	t.Helper()
	eventually(t, "all backends are reached", func() bool {
		if err := call(t.Context()); err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(backends, func(b *backend) bool { return b.calls.Load() == 0 })
	})
}

// occupy makes calls, one at a time, until b holds one of them, and returns where its end is told.
func occupy(t *testing.T, call func(context.Context) error, b *backend) <-chan error {
	t.Helper()
	for {
		ended := make(chan error, 1)
		go func() { ended <- call(context.Background()) }()
		eventually(t, "a call ends or is held", func() bool { return len(ended) == 1 || b.holding.Load() > 0 })
		if b.holding.Load() > 0 {
			return ended
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}

func TestXDSWeightsOfEndpointsAreShares(t *testing.T) {
	backends := startBackends(t, 3)
	plane := startControlPlane(t, custom(t, "evenkeel", `{"policy": "weighted_round_robin"}`))
	plane.set(t, locality{zone: "a", weight: 1, endpoints: each(backends, 1, 2, 5)})
	load := keepCalling(t, calling(plane.dial(t)))
	settle(t, "weights 1, 2, 5", 400, 0.02, []float64{0.125, 0.25, 0.625}, backends...)
	load.stop()
	load.check(t)
}

// Alone, the policy has the endpoints of all localities, each with its part of its locality's weight.
func TestXDSWeightsOfLocalitiesArePartOfTheEndpoints(t *testing.T) {
	backends := startBackends(t, 4)
	plane := startControlPlane(t, custom(t, "evenkeel", `{"policy": "weighted_round_robin"}`))
	plane.set(t,
		locality{zone: "a", weight: 1, endpoints: each(backends[:2], 10, 30)},
		locality{zone: "b", weight: 3, endpoints: each(backends[2:], 1, 1)})
	load := keepCalling(t, calling(plane.dial(t)))
	settle(t, "localities 1 and 3", 400, 0.02, []float64{1. / 16, 3. / 16, 6. / 16, 6. / 16}, backends...)
	load.stop()
	load.check(t)
}

func TestXDSPolicyUnderWRRLocalityHasTheEndpointsOfOne(t *testing.T) {
	backends := startBackends(t, 4)
	plane := startControlPlane(t, perLocality(t, custom(t, "evenkeel", `{"policy": "weighted_round_robin"}`)))
	plane.set(t,
		locality{zone: "a", weight: 1, endpoints: each(backends[:2], 1, 3)},
		locality{zone: "b", weight: 3, endpoints: each(backends[2:], 1, 1)})
	load := keepCalling(t, calling(plane.dial(t)))
	// The locality is drawn: of 1000 calls the share of one has a deviation of 1.4 %.
	settle(t, "localities 1 and 3", 1000, 0.04, []float64{1. / 16, 3. / 16, 6. / 16, 6. / 16}, backends...)
	got := shares(t, 1000, backends...)
	if a := got[1] / (got[0] + got[1]); a < 0.74 || a > 0.76 {
		t.Errorf("weights 1 and 3 within a locality: the second has %.3f of its calls, and they are not drawn", a)
	}
	load.stop()
	load.check(t)
}

// The numbers of a Struct are doubles. With three choices of three endpoints each call goes to the one
// that has nothing in flight; with the default, two, a third of them would not.
func TestXDSConfigIsInForce(t *testing.T) {
	for _, under := range []struct {
		name string
		wrap func(*testing.T, proto.Message) proto.Message
	}{
		{"alone", func(_ *testing.T, m proto.Message) proto.Message { return m }},
		{"under wrr_locality", func(t *testing.T, m proto.Message) proto.Message { return perLocality(t, m) }},
	} {
		t.Run(under.name, func(t *testing.T) {
			backends := startBackends(t, 3)
			plane := startControlPlane(t, under.wrap(t, custom(t, "evenkeel",
				`{"policy": {"p2c": {"choices": 3, "signal": "in_flight"}}, "limit": {"disabled": true}}`)))
			plane.set(t, locality{zone: "a", weight: 1, endpoints: each(backends, 1, 1, 1)})
			client := plane.dial(t)
			call := calling(client)
			reachAll(t, call, backends...)
			for _, b := range backends[1:] {
				release := b.hold()
				ended := occupy(t, call, b)
				defer func() {
					release()
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}()
			}
			before := backends[0].calls.Load()
			for range 60 {
				if err := call(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if n := backends[0].calls.Load() - before; n != 60 {
				t.Errorf("%d of 60 calls went to the endpoint without calls in flight", n)
			}
		})
	}
}

// A policy whose Struct is absent or empty is the default one: it turns away from whoever does not
// answer, which round robin would not.
func TestXDSConfigMayBeAbsentOrEmpty(t *testing.T) {
	for _, config := range []string{"", "{}"} {
		backends := startBackends(t, 3)
		plane := startControlPlane(t, custom(t, "evenkeel", config))
		plane.set(t, locality{zone: "a", weight: 1, endpoints: each(backends, 1, 1, 1)})
		call := calling(plane.dial(t))
		reachAll(t, call, backends...)
		release := backends[0].hold()
		var held sync.WaitGroup
		for range 60 {
			before := backends[0].holding.Load()
			done := make(chan error, 1)
			held.Go(func() {
				err := call(context.Background())
				if err != nil {
					t.Error(err)
				}
				done <- err
			})
			eventually(t, "a call ends or is held", func() bool {
				return len(done) == 1 || backends[0].holding.Load() > before
			})
		}
		if n := backends[0].holding.Load(); n > 6 {
			t.Errorf("config %q: %d of 60 calls went to an endpoint that answers none", config, n)
		}
		release()
		held.Wait()
	}
}
