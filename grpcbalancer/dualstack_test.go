package grpcbalancer

import (
	"net"
	"testing"

	"google.golang.org/grpc/resolver"
)

// nobodyAt returns an address of the IPv6 loopback where nobody listens, or of another IPv4 one where there is no IPv6.
func nobodyAt(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.2:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return l.Addr().String()
}

// An endpoint with an address of each family is one, by whichever of them it can be reached, and stays the same when
// that changes: what is known of it, and what is in flight.
func TestEndpointsOfTwoFamiliesAreOneByEitherAddress(t *testing.T) {
	servers := fleet(t, 2)
	other := []string{nobodyAt(t), nobodyAt(t)}
	c := dial(t, lbConfigOf(`{"policy": "round_robin", "outlier": {"mode": "off"}}`))
	list := []resolver.Endpoint{at(other[0], servers[0].addr), at(servers[1].addr, other[1])}
	c.resolver.InitialState(resolver.State{Endpoints: list})
	c.cc.Connect()
	c.waitReady(2)
	if got := c.gets(servers); got[0] != 15 || got[1] != 15 {
		t.Errorf("shares %v, want halves", got)
	}
	key := keyOf(list[0])
	before := statsOf(c.policy())[key]
	held := c.open(t.Context())
	second := c.open(t.Context()) // one on each

	// Who listens at the first address now is not noticed; when the second one's connection ends, it is.
	moved := start(t, other[0])
	if got := c.gets(append(servers, moved)); got[2] != 0 {
		t.Errorf("shares %v: the connection that is there is the one to use", got)
	}
	go servers[0].server.GracefulStop() // waits for the stream
	eventually(t, "the endpoint is reached by its other address", func() bool { return moved.conns.Load() == 1 })
	c.waitReady(2)
	if got := c.gets(append(servers, moved)); got[0] != 0 || got[1] != 15 || got[2] != 15 {
		t.Errorf("shares %v, want halves for those that are there", got)
	}
	all := statsOf(c.policy())
	if s := all[key]; len(all) != 2 || s.InFlight != 1 || s.Picks < before.Picks+30 {
		t.Errorf("%d endpoints, %+v, want two, and one stream still counted", len(all), s)
	}
	for _, s := range []interface{ CloseSend() error }{held, second} {
		_ = s.CloseSend()
	}
	_, _ = held.Recv()
	_, _ = second.Recv()
	c.waitAtRest()

	// The list in another order, of the endpoints and of their addresses, is the same list.
	builds, conns := moved.conns.Load()+servers[1].conns.Load(), statsOf(c.policy())[key].Picks
	c.resolver.UpdateState(resolver.State{Endpoints: []resolver.Endpoint{at(other[1], servers[1].addr), at(servers[0].addr, other[0])}})
	c.calls(4)
	if s := statsOf(c.policy())[key]; s.Picks != conns+2 || moved.conns.Load()+servers[1].conns.Load() != builds {
		t.Errorf("%+v with %d connections more", s, moved.conns.Load()+servers[1].conns.Load()-builds)
	}
}
