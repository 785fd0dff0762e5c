package main

import (
	"errors"
	"net"
	"sync/atomic"
)

// What is wrong with a fleet: the place of each server in it, and how slow the slow
// one is.
const (
	fleetSize    = 10
	slowServer   = 3
	brokenServer = 7
	slowness     = 10
)

// serveFunc serves b on l in a goroutine of its own. stop ends that: it waits until
// nothing of it runs any more, and returns what went wrong while it ran.
type serveFunc func(l net.Listener, b *backend) (stop func() error)

// fleet is ten servers that do the same, on ports of their own.
type fleet struct {
	backends  []*backend
	listeners []net.Listener
	stops     []func() error

	outage atomic.Bool // the server that breaks is broken
}

// startFleet starts ten servers on the loopback interface. On an error none is left.
func startFleet(serve serveFunc) (*fleet, error) {
	f := &fleet{}
	for i := range fleetSize {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, f.stop())
		}
		b := f.add(i)
		f.listeners = append(f.listeners, l)
		f.stops = append(f.stops, serve(l, b))
	}
	return f, nil
}

// add makes the fleet's server number i.
func (f *fleet) add(i int) *backend {
	b := &backend{fleet: f, slowness: 1, breaks: i == brokenServer, slot: make(chan struct{}, 1)}
	if i == slowServer {
		b.slowness = slowness
	}
	f.backends = append(f.backends, b)
	return b
}

func (f *fleet) addrs() []string {
	addrs := make([]string, len(f.listeners))
	for i, l := range f.listeners {
		addrs[i] = l.Addr().String()
	}
	return addrs
}

// stop stops all servers and waits for them.
func (f *fleet) stop() error {
	var problems []error
	for _, stop := range f.stops {
		problems = append(problems, stop())
	}
	return errors.Join(problems...)
}

// slowShare returns how many of the fleet's requests its slow server got.
func (f *fleet) slowShare() share {
	s := share{part: f.backends[slowServer].arrived.Load()}
	for _, b := range f.backends {
		s.whole += b.arrived.Load()
	}
	return s
}

// brokenShare returns the same of the broken server while it was broken.
func (f *fleet) brokenShare() share {
	s := share{part: f.backends[brokenServer].arrivedInOutage.Load()}
	for _, b := range f.backends {
		s.whole += b.arrivedInOutage.Load()
	}
	return s
}
