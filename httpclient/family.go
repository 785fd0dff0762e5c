package httpclient

import (
	"net"
	"net/netip"
	"slices"
)

// reachable leaves out the addresses of a family that this machine has no route to,
// if it has one to the other. Without that a name with both kinds of addresses would
// lose half of its requests on a machine that has one kind of network. When there is
// a route to neither, all stay: the network may be about to come up. ips is sorted,
// IPv4 first.
func reachable(ips []netip.Addr, port uint16, hasRoute func(netip.AddrPort) bool) []netip.Addr {
	if !twoFamilies(ips) {
		return ips
	}
	first6 := slices.IndexFunc(ips, netip.Addr.Is6)
	ip4, ip6 := ips[:first6], ips[first6:]
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
