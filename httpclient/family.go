package httpclient

import (
	"net"
	"net/netip"
	"slices"
)

// Family says which kinds of IP addresses are used of a name that has both.
type Family uint8

const (
	// AnyFamily uses both, but no kind that this machine has no route to, as long as it
	// has one to the other. A server with an address of each kind is two endpoints.
	AnyFamily Family = iota
	// PreferIPv4 is AnyFamily with the IPv4 addresses alone if both kinds are left.
	PreferIPv4
	// PreferIPv6 is AnyFamily with the IPv6 addresses alone if both kinds are left.
	PreferIPv6
	// OnlyIPv4 asks for no other kind.
	OnlyIPv4
	// OnlyIPv6 asks for no other kind.
	OnlyIPv6
)

// network is what the family is called by package net.
func (f Family) network() string {
	switch f {
	case OnlyIPv4:
		return "ip4"
	case OnlyIPv6:
		return "ip6"
	}
	return "ip"
}

// choose returns those of ips, which are sorted, IPv4 first, that are used.
func (f Family) choose(ips []netip.Addr, port uint16, hasRoute func(netip.AddrPort) bool) []netip.Addr {
	ip4, ip6 := splitFamilies(ips)
	switch f {
	case OnlyIPv4:
		return ip4
	case OnlyIPv6:
		return ip6
	}
	ips = reachable(ips, port, hasRoute)
	switch {
	case f == PreferIPv4 && twoFamilies(ips):
		return ip4
	case f == PreferIPv6 && twoFamilies(ips):
		return ip6
	}
	return ips
}

// reachable leaves out the addresses of a family that this machine has no route to,
// if it has one to the other. Without that a name with both kinds of addresses would
// lose half of its requests on a machine that has one kind of network. When there is
// a route to neither, all stay: the network may be about to come up. ips is sorted,
// IPv4 first.
func reachable(ips []netip.Addr, port uint16, hasRoute func(netip.AddrPort) bool) []netip.Addr {
	if !twoFamilies(ips) {
		return ips
	}
	ip4, ip6 := splitFamilies(ips)
	// One address with a route is enough: routes of single addresses are the
	// network's business.
	any := func(ips []netip.Addr) bool {
		return slices.ContainsFunc(ips, func(ip netip.Addr) bool {
			return hasRoute(netip.AddrPortFrom(ip, port))
		})
	}
	switch has4, has6 := any(ip4), any(ip6); {
	case has4 && !has6:
		return ip4
	case has6 && !has4:
		return ip6
	}
	return ips
}

// splitFamilies divides sorted ips into those of either family.
func splitFamilies(ips []netip.Addr) (ip4, ip6 []netip.Addr) {
	first6 := slices.IndexFunc(ips, netip.Addr.Is6)
	if first6 < 0 {
		return ips, nil
	}
	return ips[:first6], ips[first6:]
}

// twoFamilies reports whether sorted ips has addresses of both families.
func twoFamilies(ips []netip.Addr) bool {
	return len(ips) > 0 && ips[0].Is4() && ips[len(ips)-1].Is6()
}

// machineHasRoute asks the kernel: it looks up the route when a UDP socket is
// connected, and sends nothing.
func machineHasRoute(ap netip.AddrPort) bool {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(ap))
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was sent that could be lost
	return true
}
