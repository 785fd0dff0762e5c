package main

import (
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
)

// window is longer than any policy here waits before it publishes.
const window = 20 * time.Millisecond

// settle has all that is under way happen, and the windows of publication pass.
func (c *fakeChannel) settle(int) {
	for {
		c.pump()
		before := c.publications()
		time.Sleep(window)
		c.mu.Lock()
		quiet := len(c.events) == 0 && c.published == before
		c.mu.Unlock()
		if quiet {
			return
		}
	}
}

// starts measures the way of a list until all its endpoints are READY, and what follows when it comes again.
func starts(s settings, w io.Writer) error {
	fmt.Fprintf(w, "\nstart on a faked channel, until all are READY; then the same list again\n")
	fmt.Fprintf(w, "%-24s %6s %10s %10s %10s %8s %12s %8s\n", "policy", "n", "CPU ms", "allocs", "MB", "pickers", "again CPU ms", "pickers")
	for _, n := range append(s.starts, 10_000) {
		var first float64
		for _, p := range []peer{roundRobin, peers[1], evenkeel} {
			if n == 10_000 && p != evenkeel && (p != roundRobin || !s.full) {
				continue
			}
			list := addresses(n)
			var c *fakeChannel
			var b balancer.Balancer
			var err error
			u := measured(func() {
				if c, b, err = p.started(list); err == nil {
					c.settle(n)
				}
			})
			if err != nil {
				return err
			}
			pickers := c.publications()
			again := measured(func() { err = c.hand(b, list); c.pump() })
			fmt.Fprintf(w, "%-24s %6d %10.1f %10d %10.1f %8d %12.1f %8d", p.name, n, ms(u.cpu), u.allocs, float64(u.bytes)/1e6,
				pickers, ms(again.cpu), c.publications()-pickers)
			if p == roundRobin {
				first = ms(u.cpu)
			} else if first > 0 {
				fmt.Fprintf(w, "   %.4f of round_robin's CPU", ms(u.cpu)/first)
			}
			fmt.Fprintln(w)
			b.Close()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// changes measures one connection that is lost and made again.
func changes(_ settings, w io.Writer) error {
	fmt.Fprintf(w, "\none connection of n lost and made again, the mean of 20\n")
	fmt.Fprintf(w, "%-24s %6s %10s %10s %10s %8s %16s\n", "policy", "n", "CPU ms", "allocs", "kB", "pickers", "children touched")
	for _, n := range []int{100, 1000, 10_000} {
		for _, p := range []peer{roundRobin, evenkeel} {
			if n == 10_000 && p == roundRobin {
				continue // its start alone takes half a minute
			}
			list := addresses(n)
			c, b, err := p.started(list)
			if err != nil {
				return err
			}
			c.settle(n)
			const flaps = 20
			pickers := c.publications()
			c.asked = 0
			u := measured(func() {
				for i := range flaps {
					c.conns[list[i*n/flaps].Addresses[0].Addr].becomes(connectivity.Idle)
					c.settle(n)
				}
			})
			fmt.Fprintf(w, "%-24s %6d %10.2f %10.0f %10.1f %8.1f %16.1f\n", p.name, n, ms(u.cpu)/flaps, float64(u.allocs)/flaps,
				float64(u.bytes)/1e3/flaps, float64(c.publications()-pickers)/flaps, float64(c.asked)/flaps)
			b.Close()
		}
	}
	return nil
}
