package httpclient

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Target is what a URL names: the service whose endpoints share the requests. It is
// comparable, and all URLs of one scheme, host and port have the same one.
type Target struct {
	// Scheme is "http" or "https".
	Scheme string
	// Host is the host in lower case, without brackets and port: a name or an IP
	// address. The zone of an address keeps its case. A name with a dot at its end is
	// another one than without, as it is in DNS.
	Host string
	// Port is the port as a decimal number, the scheme's own if the URL has none.
	Port string
}

// String returns the target as a URL without a path.
func (t Target) String() string { return t.Scheme + "://" + net.JoinHostPort(t.Host, t.Port) }

// targetOf returns the target of u. It runs on each request, and allocates only for
// hosts in upper case or with a zone. Whether the host can be one is for validate to say.
func targetOf(u *url.URL) (Target, error) {
	if u == nil {
		return Target{}, fmt.Errorf("httpclient: URL is nil, want http or https")
	}
	t := Target{Scheme: u.Scheme, Host: lowerHost(u.Hostname()), Port: u.Port()}
	switch {
	case t.Scheme == "http" && t.Port == "":
		t.Port = "80"
	case t.Scheme == "https" && t.Port == "":
		t.Port = "443"
	case t.Scheme != "http" && t.Scheme != "https":
		return t, fmt.Errorf("httpclient: URL.Scheme is %q, want http or https", clip(u.Scheme))
	case t.Port[0] == '0':
		t.Port = cmp.Or(strings.TrimLeft(t.Port, "0"), "0")
	}
	return t, nil
}

// lowerHost makes host lower case but for the zone of an IPv6 address, which names an
// interface of this machine.
func lowerHost(host string) string {
	if i := strings.IndexByte(host, '%'); i >= 0 {
		return strings.ToLower(host[:i]) + host[i:]
	}
	return strings.ToLower(host)
}

// validate runs when a target is first used. Names must be ASCII: whoever needs
// others gives them in the form that DNS has.
func (t Target) validate() error {
	ip, err := netip.ParseAddr(t.Host)
	if err != nil && !isHostName(t.Host) {
		return fmt.Errorf("httpclient: URL.Host is %q, want an IP address or a name of ASCII letters, digits, '-', '_' and '.'", clip(t.Host))
	}
	if err := checkZone(ip.Zone()); err != nil {
		return fmt.Errorf("httpclient: URL.Host is %q, %w", clip(t.Host), err)
	}
	if n, err := strconv.ParseUint(t.Port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("httpclient: port of URL.Host is %q, want 1 to 65535", clip(t.Port))
	}
	return nil
}

// port returns the port of a valid target.
func (t Target) port() uint16 {
	n, _ := strconv.ParseUint(t.Port, 10, 16) // validated when the target was made
	return uint16(n)
}
