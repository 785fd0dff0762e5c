package httpclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// DNS is a Resolver that looks up the A and AAAA records of the target's host. The
// zero value is ready, and is what a Transport without a Resolver uses. It must not
// be changed while it is in use.
//
// The answer is taken as a set: its order says nothing, and each client gets one of
// its own, so that clients that start together do not go round together. An address
// family that this machine has no route to is left out as long as the other has one.
// A lookup that fails is tried again after 1 s, then twice that, up to 32 s, and
// leaves the last list in force (a name that does not exist counts as failed); when
// connections fail, the next lookup comes earlier. A host that is an IP address is
// its own only endpoint and needs no lookup. The name localhost is one endpoint,
// since both its addresses are this machine.
type DNS struct {
	// Interval is the time between lookups, ±10 %. 0 means 30 s; otherwise at least
	// 5 s, which is also the least time between lookups when connections fail.
	Interval time.Duration
	// Lookup finds the addresses of a host. Nil means net.DefaultResolver. A lookup
	// that takes longer than 10 s fails.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)

	// hasRoute is the test's own, nil for the machine's.
	hasRoute func(netip.AddrPort) bool
}

const (
	dnsInterval    = 30 * time.Second
	dnsMinInterval = 5 * time.Second
	dnsSpread      = 0.1
	dnsTimeout     = 10 * time.Second
)

// Validate reports whether Interval is in its range, and d is not nil. A Transport
// refuses to work with one that is not.
func (d *DNS) Validate() error {
	if d == nil {
		return errors.New("httpclient: Resolver is a nil *DNS, want nil without a type, or &DNS{}")
	}
	if d.Interval != 0 && d.Interval < dnsMinInterval {
		return fmt.Errorf("httpclient: DNS.Interval is %v, want 0 or at least %v", d.Interval, dnsMinInterval)
	}
	return nil
}

// Watch looks up the target's host until ctx is done.
func (d *DNS) Watch(ctx context.Context, target Target, sink Sink) error {
	if err := d.Validate(); err != nil {
		return err
	}
	if ip, err := netip.ParseAddr(target.Host); err == nil {
		_ = sink.Update(addresses([]netip.Addr{ip.Unmap()}, target.port())) // one address, no problem
		<-ctx.Done()
		return ctx.Err()
	}
	interval := cmp.Or(d.Interval, dnsInterval)
	seed := maphash.MakeSeed()
	for failures := 0; ; {
		earliest := time.Now().Add(dnsMinInterval)
		list, err := d.resolve(ctx, target, seed)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			sink.Error(err)
		} else {
			err = sink.Update(list)
		}
		wait, hints := spread(interval, dnsSpread), sink.Refresh()
		if err != nil {
			// A server that fails is not asked more often because connections fail too.
			wait, hints = backoff(failures), nil
			failures++
		} else {
			failures = 0
		}
		if !pause(ctx, wait, earliest, hints) {
			return ctx.Err()
		}
	}
}

// resolve looks the host up once and returns the set in this client's order.
func (d *DNS) resolve(ctx context.Context, target Target, seed maphash.Seed) ([]Address, error) {
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	lookup := d.Lookup
	if lookup == nil {
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	answer, err := lookup(ctx, target.Host)
	if err != nil {
		return nil, err
	}
	ips := make([]netip.Addr, len(answer)) // the answer is the lookup's own
	for i, ip := range answer {
		ips[i] = ip.Unmap()
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	ips = slices.Compact(ips)
	hasRoute := d.hasRoute
	if hasRoute == nil {
		hasRoute = machineHasRoute
	}
	ips = reachable(ips, target.port(), hasRoute)
	if isLocalhost(target.Host) && twoFamilies(ips) {
		return []Address{{Addr: net.JoinHostPort(target.Host, target.Port)}}, nil
	}
	// An order by hash stays the same for those who stay, unlike a shuffled one.
	slices.SortFunc(ips, func(a, b netip.Addr) int {
		return cmp.Compare(maphash.Comparable(seed, a), maphash.Comparable(seed, b))
	})
	return addresses(ips, target.port()), nil
}

func addresses(ips []netip.Addr, port uint16) []Address {
	list := make([]Address, len(ips))
	for i, ip := range ips {
		list[i].Addr = netip.AddrPortFrom(ip, port).String()
	}
	return list
}

func isLocalhost(host string) bool {
	return strings.TrimSuffix(host, ".") == "localhost"
}
