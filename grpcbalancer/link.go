package grpcbalancer

import (
	"slices"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// follower is somebody who uses the connections of endpoints beside the calls: streams of
// health, or of load reports. It is compared by ==.
type follower interface {
	// onReady is told of the connection of an endpoint that is READY now. It returns what is called,
	// once, when that is over: the connection was lost, its endpoint left, or nobody is
	// to follow it any more; nil if there is nothing to end. Both are called one at a time for one
	// endpoint, with seat.links held: they may take mu, and must not wait for calls or a child.
	onReady(c *seat, sc balancer.SubConn) (onLost func())
}

// conn is one of the connections that a child makes: pick_first makes several for an endpoint
// of several addresses, and keeps one.
type conn struct {
	sub balancer.SubConn // guarded by seat.links; nil until NewSubConn has returned
}

// NewSubConn implements balancer.ClientConn. What it returns is the channel's own, since picks have to
// return that: only the listener is wrapped, which costs no pick anything.
func (c *seat) NewSubConn(addrs []resolver.Address, o balancer.NewSubConnOptions) (balancer.SubConn, error) {
	n, child := &conn{}, o.StateListener
	o.StateListener = func(s balancer.SubConnState) {
		// Who follows may hold the endpoint before the child has it picked, and lets go of it when that is over.
		up := s.ConnectivityState == connectivity.Ready
		if up {
			c.heard(n, s.ConnectivityState)
		}
		if child != nil {
			child(s)
		}
		if !up {
			c.heard(n, s.ConnectivityState)
		}
	}
	//lint:ignore SA1019 it is what the child called; that it will be for one address says nothing of who passes it on
	sub, err := c.ClientConn.NewSubConn(addrs, o)
	if err == nil {
		c.links.Lock()
		n.sub = sub
		c.links.Unlock()
	}
	return sub, err
}

// heard takes a connection's state. The first that is READY is the endpoint's until it is something
// else: the child shuts the others down, though one of them may have been READY, too, before
// it knew of that.
func (c *seat) heard(n *conn, s connectivity.State) {
	c.links.Lock()
	defer c.links.Unlock()
	switch {
	case c.over:
	case s == connectivity.Ready && c.ready == nil && n.sub != nil:
		c.ready = n
		c.lost = make([]func(), len(c.followers))
		for i, f := range c.followers {
			c.lost[i] = f.onReady(c, n.sub)
		}
	case s != connectivity.Ready && c.ready == n:
		c.lose()
	}
}

// lose ends what follows the connection. Called under links.
func (c *seat) lose() {
	lost := c.lost
	c.ready, c.lost = nil, nil
	endAll(lost)
}

func endAll(lost []func()) {
	for _, end := range lost {
		if end != nil {
			end()
		}
	}
}

// follow makes these the followers of the seat's connections. Those that stay notice nothing.
func (c *seat) follow(followers []follower) {
	c.links.Lock()
	defer c.links.Unlock()
	before, ends := c.followers, c.lost
	c.followers = followers
	if c.ready == nil {
		return
	}
	c.lost = make([]func(), len(followers))
	for i, f := range followers {
		if at := slices.Index(before, f); at >= 0 {
			c.lost[i], ends[at] = ends[at], nil
		}
	}
	endAll(ends)
	for i, f := range followers {
		if !slices.Contains(before, f) {
			c.lost[i] = f.onReady(c, c.ready.sub)
		}
	}
}

// end is for a seat that is left, before its child is closed: a producer of gRPC's own (load
// reports) may not be begun on a connection while that is shut down.
func (c *seat) end() {
	c.links.Lock()
	defer c.links.Unlock()
	c.over = true
	c.lose()
}

// follow makes these the followers of all connections. Called under calls.
func (p *policy) follow(followers []follower) {
	p.followers = followers
	for _, e := range p.children {
		e.seat.follow(followers)
	}
}
