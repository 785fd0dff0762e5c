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
// its own, so that clients that start together do not go round together. A lookup that
// fails is tried again after 1 s, then twice that, up to 32 s, and
// leaves the last list in force (a name that does not exist counts as failed, but see
// ForgetAfter); when connections fail, the next lookup comes earlier. A host that is an
// IP address is its own only endpoint and needs no lookup. The name localhost is one
// endpoint, since both its addresses are this machine.
type DNS struct {
	// Interval is the time between lookups, ±10 %. 0 means 30 s; otherwise at least
	// 5 s, which is also the least time between lookups when connections fail. The times
	// that the records come with are not known here.
	Interval time.Duration
	// ForgetAfter is how long a name has to be without addresses, or not to exist, for the
	// target to be emptied. A server that cannot be asked, or fails, says nothing of that kind. 0 means
	// that the last list stays for good, since names disappear by mistake more often than
	// services do; Snapshot shows the error. Otherwise at least 1 s. It is looked at with
	// each lookup.
	ForgetAfter time.Duration
	// Family says which of IPv4 and IPv6 addresses are used.
	Family Family
	// Resolver asks the questions. Nil means net.DefaultResolver. One with PreferGo and Dial asks
	// a server of your own. It is not used if Lookup is set.
	Resolver *net.Resolver
	// Lookup finds the addresses of a host. Nil means the Resolver's. A lookup that
	// takes longer than 10 s fails. An empty answer without an error empties the target at
	// once; that the name has no addresses is a *net.DNSError with IsNotFound.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)

	// hasRoute is the test's own, nil for the machine's.
	hasRoute func(netip.AddrPort) bool
}

const dnsForgetLeast = time.Second

// Validate reports every problem of the settings, joined, and whether d is nil. A Transport
// refuses to work with one that has any.
func (d *DNS) Validate() error {
	if d == nil {
		return errors.New("httpclient: Resolver is a nil *DNS, want nil without a type, or &DNS{}")
	}
	problems := []error{
		checkEvery("DNS.Interval", d.Interval, lookLeast),
		checkEvery("DNS.ForgetAfter", d.ForgetAfter, dnsForgetLeast),
	}
	if d.Family > OnlyIPv6 {
		problems = append(problems, fmt.Errorf("httpclient: DNS.Family is %d, want 0 to %d", d.Family, OnlyIPv6))
	}
	return errors.Join(problems...)
}

// Watch looks up the target's host until ctx is done.
func (d *DNS) Watch(ctx context.Context, target Target, sink Sink) error {
	if err := d.Validate(); err != nil {
		return err
	}
	if ip, err := netip.ParseAddr(target.Host); err == nil {
		return justIP(ctx, ip, target.port(), sink)
	}
	seed := maphash.MakeSeed()
	gone := absence{forgetAfter: d.ForgetAfter}
	return d.rounds().run(ctx, sink, func(ctx context.Context) ([]Address, error) {
		found, err := d.find(ctx, target.Host, target.port())
		if err != nil {
			return gone.judge(err), err
		}
		gone.since = time.Time{}
		list := make([]Address, len(found))
		for i, addr := range found {
			list[i].Addr = addr
		}
		return ordered(list, seed), nil
	})
}

func (d *DNS) rounds() rounds {
	return rounds{every: cmp.Or(d.Interval, lookEvery), least: lookLeast}
}

// justIP serves a target whose host is an address.
func justIP(ctx context.Context, ip netip.Addr, port uint16, sink Sink) error {
	addr := netip.AddrPortFrom(ip.Unmap(), port).String()
	_ = sink.Update([]Address{{Addr: addr}}) // one address, no problem
	<-ctx.Done()
	return ctx.Err()
}

// find looks a host up once and returns the addresses that are used, each once.
func (d *DNS) find(ctx context.Context, host string, port uint16) ([]string, error) {
	answer, err := d.lookup(ctx, host)
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
	used := d.Family.choose(ips, port, hasRoute)
	if len(used) == 0 && len(ips) > 0 {
		return nil, &net.DNSError{Err: "no addresses of the family asked for", Name: host, IsNotFound: true}
	}
	if isLocalhost(host) && twoFamilies(used) {
		return []string{location{host: host, port: port}.String()}, nil
	}
	found := make([]string, len(used))
	for i, ip := range used {
		found[i] = netip.AddrPortFrom(ip, port).String()
	}
	return found, nil
}

func (d *DNS) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if d.Lookup != nil {
		return d.Lookup(ctx, host)
	}
	return cmp.Or(d.Resolver, net.DefaultResolver).LookupNetIP(ctx, d.Family.network(), host)
}

// ordered sorts list by a hash: an order that is this client's own, and in which those who
// stay keep their order, unlike in a shuffled one.
func ordered(list []Address, seed maphash.Seed) []Address {
	slices.SortFunc(list, func(a, b Address) int {
		return cmp.Compare(maphash.String(seed, a.Addr), maphash.String(seed, b.Addr))
	})
	return list
}

func isLocalhost(host string) bool {
	return strings.TrimSuffix(host, ".") == "localhost"
}

// absence is how long a name has been without records.
type absence struct {
	forgetAfter time.Duration // 0: never
	since       time.Time     // zero: it has some, as far as anybody knows
}

// judge returns the list to go with a lookup's error: nil leaves the last one in force.
func (a *absence) judge(err error) []Address {
	var de *net.DNSError
	if !errors.As(err, &de) || !de.IsNotFound {
		return nil
	}
	now := time.Now()
	if a.since.IsZero() {
		a.since = now
	}
	if a.forgetAfter == 0 || now.Sub(a.since) < a.forgetAfter {
		return nil
	}
	return []Address{}
}
