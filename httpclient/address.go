package httpclient

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// Address is one endpoint in a resolver's list.
type Address struct {
	// Addr is where to connect: "10.0.0.1:8080", "[fd00::1]:8080", "[fe80::1%eth0]:8080"
	// or "name:8080". Without a port, that of the target is used. IPv6 without
	// brackets is taken if it cannot be read as an address with a port; "::1:8080"
	// can, and is refused. A name is one endpoint, whatever number of addresses it
	// has: they are tried in turn at each dial, and the weight is that of all. With a
	// dot at its end it is another endpoint than without: DNS then looks up just that
	// name. A zone has no ':', '%', brackets, spaces or control characters, and is not
	// escaped as in URLs.
	//
	// A number at the end, "10.0.0.1:8080#2" to "#1024", makes one more endpoint at the same
	// address, with connections and measurements of its own; see [MinBackends].
	Addr string
	// Weight is the relative capacity. The zero value is absent and counts as 1. An
	// explicit zero, evenkeel.WeightOf(0), drains the endpoint: it gets no new requests, and
	// its connections close when the last one has ended. If all in the list are 0, all count as equal, since somebody
	// has to serve. Which policies go by weights is said with each.
	Weight evenkeel.Weight
}

// location is an address taken apart: host in canonical form, a port, 0 where the text
// had none, and the number, 0 where it had none.
type location struct {
	host   string
	port   uint16
	number int
}

// String is the canonical text, and the ID of the endpoint: the same for each way to
// write the address.
func (l location) String() string {
	address := net.JoinHostPort(l.host, strconv.Itoa(int(l.port)))
	if l.number == 0 {
		return address
	}
	return numbered(address, l.number)
}

const (
	// maxProblems bounds how many problems of one list are told in full.
	maxProblems = 16
	// maxAddresses bounds a list. Who has more has a mistake, or needs a proxy.
	maxAddresses = 1 << 17
	// maxNumber bounds how many endpoints one address can be.
	maxNumber = 1024
)

// locate checks a list and takes its addresses apart; port is for those without. It
// reports every problem at once: text that is no address or can be read in two
// ways, one address twice, weights out of range.
func locate(list []Address, port uint16) ([]location, error) {
	return locateAt(list, port, func(i int) string { return fmt.Sprintf("address %d", i) })
}

// locateAt is locate for a list whose places the reader knows by other names.
func locateAt(list []Address, port uint16, place func(int) string) ([]location, error) {
	if len(list) > maxAddresses {
		return nil, fmt.Errorf("httpclient: the list has %d addresses, want at most %d", len(list), maxAddresses)
	}
	var problems []error
	more := 0
	add := func(i int, format string, args ...any) {
		if len(problems) == maxProblems {
			more++
			return
		}
		problems = append(problems, fmt.Errorf("httpclient: %s: %s", place(i), fmt.Sprintf(format, args...)))
	}
	locations := make([]location, len(list))
	seen := make(map[location]int, len(list))
	for i, a := range list {
		if w := a.Weight.Value(); w != 0 && !(w >= picker.MinWeight && w <= picker.MaxWeight) {
			add(i, "Weight is %v, want 0 or %v to %v", w, picker.MinWeight, float64(picker.MaxWeight))
		}
		l, err := parseAddr(a.Addr)
		if err != nil {
			add(i, "Addr is %q, %v", clip(a.Addr), err)
			continue
		}
		if l.port == 0 {
			l.port = port
		}
		if first, dup := seen[l]; dup {
			add(i, "Addr is %q, the same as %s, want each once", clip(a.Addr), place(first))
			continue
		}
		seen[l] = i
		locations[i] = l
	}
	if more > 0 {
		problems = append(problems, fmt.Errorf("httpclient: and %d more problems in the list", more))
	}
	return locations, errors.Join(problems...)
}

// parseAddr takes one address apart. Its errors say what is wanted instead.
func parseAddr(s string) (location, error) {
	address, number := cutNumber(s)
	if number == "" {
		return parseHostPort(s)
	}
	n, err := strconv.Atoi(number[1:])
	if err != nil || n < 2 || n > maxNumber || strconv.Itoa(n) != number[1:] {
		return location{}, fmt.Errorf("want a number of 2 to %d after '#'", maxNumber)
	}
	l, err := parseHostPort(address)
	l.number = n
	return l, err
}

// cutNumber cuts s before the '#' of its number, which is "" if it has none. A '#' in
// brackets belongs to the zone.
func cutNumber(s string) (address, number string) {
	i := strings.LastIndexByte(s, '#')
	if i < 0 || strings.IndexByte(s[i:], ']') >= 0 {
		return s, ""
	}
	return s[:i], s[i:]
}

// numbered is the text of the nth endpoint at an address.
func numbered(address string, n int) string { return address + "#" + strconv.Itoa(n) }

// dialed returns where to connect to for an endpoint: its ID without the number.
func dialed(id string) string {
	address, _ := cutNumber(id)
	return address
}

// parseHostPort is parseAddr for text without a number.
func parseHostPort(s string) (location, error) {
	if s == "" {
		return location{}, errors.New("want a host, with or without a port")
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		if ap.Port() == 0 {
			return location{}, errPort
		}
		return at(ap.Addr(), ap.Port())
	}
	if inner, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(inner, "]") {
		ip, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !ip.Is6() {
			return location{}, errors.New("want an IPv6 address in the brackets")
		}
		return at(ip, 0)
	}
	if ip, err := netip.ParseAddr(s); err == nil {
		if ambiguous(s) {
			return location{}, errors.New("want brackets: it is an IPv6 address, and also one with a port")
		}
		return at(ip, 0)
	}
	return parseName(s)
}

var errPort = errors.New("want a port of 1 to 65535")

// parseName reads a host name with or without a port.
func parseName(s string) (location, error) {
	host, port := s, uint16(0)
	if before, after, ok := strings.Cut(s, ":"); ok {
		if strings.Contains(after, ":") || s[0] == '[' {
			return location{}, errors.New("want an IP address, or a name, with at most one port")
		}
		n, err := strconv.ParseUint(after, 10, 16)
		if err != nil || n == 0 {
			return location{}, errPort
		}
		host, port = before, uint16(n)
	}
	if !isHostName(host) {
		return location{}, errors.New("want an IP address, or a name of letters, digits, '-', '_' and '.'")
	}
	return location{host: strings.ToLower(host), port: port}, nil
}

// at is the location of an IP address, which has one text: an IPv4 address written as
// IPv6 is the same host.
func at(ip netip.Addr, port uint16) (location, error) {
	if err := checkZone(ip.Zone()); err != nil {
		return location{}, err
	}
	return location{host: ip.Unmap().String(), port: port}, nil
}

// ambiguous reports whether the text of an IPv6 address without brackets can also be
// read as a shorter one and a port.
func ambiguous(s string) bool {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return false
	}
	if _, err := strconv.ParseUint(s[i+1:], 10, 16); err != nil {
		return false
	}
	_, err := netip.ParseAddr(s[:i])
	return err == nil
}

// isHostName reports whether s can be a name in DNS. A name whose last label is a
// number is none: it is a mistyped IPv4 address.
func isHostName(s string) bool {
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > 253 {
		return false
	}
	last := ""
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, notInName) {
			return false
		}
		last = label
	}
	_, err := strconv.ParseUint(last, 0, 64)
	return err != nil && !errors.Is(err, strconv.ErrRange)
}

func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
}
