package grpcbalancer

import (
	"context"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/evenkeel/evenkeel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a policy on a fake channel. It belongs into a synctest bubble, so that
// settle knows when nothing moves any more.
type rig struct {
	*fakeChannel

	t      *testing.T
	policy *policy
	config loadBalancingConfig // of the next update
	list   []resolver.Endpoint // of the last one
}

// fakeTarget is what error texts name.
var fakeTarget = resolver.Target{URL: url.URL{Scheme: "fake", Path: "/orders"}}

// newRig returns a rig without endpoints; json is its config.
func newRig(t *testing.T, json string) *rig {
	t.Helper()
	return newSeededRig(t, json, nil)
}

// newSeededRig is newRig with a source of randomness.
func newSeededRig(t *testing.T, json string, random func() uint64) *rig {
	t.Helper()
	r := &rig{fakeChannel: newFakeChannel(), t: t, config: parse(t, json)}
	r.policy = builder{rand: random}.Build(r.fakeChannel, balancer.BuildOptions{Target: fakeTarget}).(*policy)
	t.Cleanup(r.policy.Close)
	return r
}

// parse returns a parsed config.
func parse(t testing.TB, json string) loadBalancingConfig {
	t.Helper()
	c, err := builder{}.ParseConfig([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// at returns an endpoint with these addresses.
func at(addrs ...string) resolver.Endpoint {
	var e resolver.Endpoint
	for _, a := range addrs {
		e.Addresses = append(e.Addresses, resolver.Address{Addr: a})
	}
	return e
}

// each returns one endpoint per address.
func each(addrs ...string) []resolver.Endpoint {
	list := make([]resolver.Endpoint, len(addrs))
	for i, a := range addrs {
		list[i] = at(a)
	}
	return list
}

// send hands a list to the policy, as the channel does, and delivers nothing.
func (r *rig) send(list []resolver.Endpoint) error {
	r.list = list
	return r.policy.UpdateClientConnState(balancer.ClientConnState{
		ResolverState:  resolver.State{Endpoints: list},
		BalancerConfig: r.config,
	})
}

// update hands over a list, which has to be taken, and lets all come of it that does
// without time passing.
func (r *rig) update(list ...resolver.Endpoint) {
	r.t.Helper()
	if err := r.send(list); err != nil {
		r.t.Fatalf("update: %v", err)
	}
	r.settle()
}

// settle delivers events until there are no more and no goroutine is at work.
func (r *rig) settle() {
	for {
		synctest.Wait()
		r.mu.Lock()
		quiet := len(r.events) == 0
		r.mu.Unlock()
		if quiet {
			return
		}
		r.pump()
	}
}

// up is update, and the window of publication over.
func (r *rig) up(list ...resolver.Endpoint) {
	r.t.Helper()
	r.update(list...)
	r.passWindow()
}

// passWindow lets the window of publication pass.
func (r *rig) passWindow() {
	time.Sleep(2 * coalesceFor)
	r.settle()
}

// state is the state that the channel shows.
func (r *rig) state() connectivity.State { return r.latest().ConnectivityState }

func (r *rig) wantState(want connectivity.State) {
	r.t.Helper()
	if got := r.state(); got != want {
		r.t.Fatalf("state %v, want %v", got, want)
	}
}

// pick picks with the channel's present picker.
func (r *rig) pick() (balancer.PickResult, error) {
	return r.latest().Picker.Pick(balancer.PickInfo{FullMethodName: "/s/m", Ctx: context.Background()})
}

// picked picks and returns the address and the end of it.
func (r *rig) picked() (addr string, done func(balancer.DoneInfo)) {
	r.t.Helper()
	result, err := r.pick()
	if err != nil {
		r.t.Fatalf("pick: %v", err)
	}
	return result.SubConn.(*fakeConn).addr, result.Done
}

// pickedOn picks while the pool knows of no other endpoint that is READY, whatever the
// policy thinks of this one.
func (r *rig) pickedOn(key string) (done func(balancer.DoneInfo)) {
	r.t.Helper()
	var alone, asBefore []evenkeel.StateChange
	for _, e := range r.policy.list {
		asBefore = append(asBefore, evenkeel.StateChange{ID: e.key, State: poolState(e)})
		if e.key != key {
			alone = append(alone, evenkeel.StateChange{ID: e.key, State: evenkeel.NotReady})
		}
	}
	r.policy.pool.SetStates(alone)
	_, done = r.picked()
	r.policy.pool.SetStates(asBefore)
	return done
}

// shares ends n picks well and returns how many each address got.
func (r *rig) shares(n int) map[string]int {
	r.t.Helper()
	got := map[string]int{}
	for range n {
		addr, done := r.picked()
		got[addr]++
		done(succeeded)
	}
	return got
}

// stats returns what the pool shows of an endpoint.
func (r *rig) stats(id string) evenkeel.EndpointStats {
	r.t.Helper()
	s, ok := statsOf(r.policy)[id]
	if !ok {
		r.t.Fatalf("no endpoint %q", id)
	}
	return s
}

func statsOf(p *policy) map[string]evenkeel.EndpointStats {
	all := map[string]evenkeel.EndpointStats{}
	for _, s := range p.pool.Stats().Endpoints {
		all[s.ID] = s
	}
	return all
}

// How attempts end.
var (
	succeeded = balancer.DoneInfo{BytesSent: true, BytesReceived: true}
	phantom   = balancer.DoneInfo{}
)

// unaryCall and streamCall are what an interceptor calls next.
func unaryCall(see func(context.Context)) grpc.UnaryInvoker {
	return func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		see(ctx)
		return nil
	}
}

func streamCall(see func(context.Context)) grpc.Streamer {
	return func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
		see(ctx)
		return nil, nil
	}
}
