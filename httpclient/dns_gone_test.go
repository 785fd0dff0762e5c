package httpclient

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
)

var errGone = &net.DNSError{Err: "no such host", Name: "svc.test", IsNotFound: true}

func TestDNSNameThatDisappearsKeepsItsListForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{}
		z.set(nil, "10.0.0.1", "10.0.0.2")
		tr := stubbed(t, &Transport{Resolver: &DNS{Lookup: z.lookup}}, stubAnswer)
		roundTripAll(t, tr)
		z.set(errGone)
		for range 24 { // a target without requests would be closed
			time.Sleep(time.Hour / 6)
			roundTripAll(t, tr)
		}
		if s := one(t, tr); len(s.Endpoints) != 2 || !errors.Is(s.ResolveError, errGone) {
			t.Errorf("%d endpoints, %v, want 2 and %v", len(s.Endpoints), s.ResolveError, errGone)
		}
		tr.Close()
	})
}

func TestDNSForgetsANameThatStaysAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{}
		z.set(nil, "10.0.0.1")
		tr := stubbed(t, &Transport{Resolver: &DNS{Lookup: z.lookup, ForgetAfter: 2 * time.Minute}}, stubAnswer)
		roundTripAll(t, tr)
		z.set(&net.DNSError{Err: "server misbehaving", Name: "svc.test", IsTemporary: true}) // a server that fails says nothing about the name
		time.Sleep(10 * time.Minute)
		roundTripAll(t, tr)
		z.set(errGone)
		time.Sleep(2 * time.Minute)
		roundTripAll(t, tr)
		time.Sleep(80 * time.Second) // two pauses of up to 38.4 s: to the first that misses it, and to one after its time
		if _, err := tr.RoundTrip(request(t, "GET", svc, nil)); !errors.Is(err, evenkeel.ErrEmpty) {
			t.Errorf("%v, want %v", err, evenkeel.ErrEmpty)
		}
		if s := one(t, tr); len(s.Endpoints) != 0 || !errors.Is(s.ResolveError, errGone) {
			t.Errorf("%d endpoints, %v, want 0 and %v", len(s.Endpoints), s.ResolveError, errGone)
		}
		z.set(nil, "10.0.0.2")
		time.Sleep(39 * time.Second)
		roundTripAll(t, tr)
		if s := one(t, tr); s.ResolveError != nil {
			t.Errorf("%v after the name is back", s.ResolveError)
		}
		z.set(errGone) // its time starts anew
		time.Sleep(2 * time.Minute)
		roundTripAll(t, tr)
		tr.Close()
	})
}

// Bug 40: with nobody there the client recovers by itself soon after somebody is, and says meanwhile why
// requests fail.
func TestBug40NameWithoutAddressesRecoversByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{}
		z.set(errGone)
		tr := stubbed(t, &Transport{Resolver: &DNS{Lookup: z.lookup}}, stubAnswer)
		for range 100 { // 10 s
			_, err := tr.RoundTrip(request(t, "GET", svc, nil))
			if !errors.Is(err, errGone) || !strings.Contains(err.Error(), "svc.test") {
				t.Fatalf("%v, want %v", err, errGone)
			}
			time.Sleep(100 * time.Millisecond)
		}
		z.set(nil, "10.0.0.1", "10.0.0.2", "10.0.0.3")
		time.Sleep(10600 * time.Millisecond) // the fourth pause, of 8 s + 20 %, and 1 s
		roundTripAll(t, tr)
		tr.Close()
	})
}

func TestDNSServerThatFailsIsNotAskedMoreOftenForHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{}
		z.set(errResolve)
		watching(t, &DNS{Lookup: z.lookup}, "svc.test", func(n *noted) {
			for range 2400 { // 4 minutes
				select {
				case n.hints <- struct{}{}:
				default:
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
		for i, gap := range z.gaps() {
			if want := min(time.Second<<i, 32*time.Second); gap < want*8/10 || gap > want*12/10 {
				t.Errorf("pause %d is %v, want %v ±20 %%", i, gap, want)
			}
		}
	})
}

func TestFamilyIsWhatIsAskedFor(t *testing.T) {
	const ip4, ip6 = "10.0.0.1:80 10.0.0.2:80", "[fd00::1]:80"
	every := func(netip.AddrPort) bool { return true }
	no6 := func(ap netip.AddrPort) bool { return ap.Addr().Is4() }
	for _, c := range []struct {
		family Family
		route  func(netip.AddrPort) bool
		host   string
		ips    []string
		want   string
	}{
		{AnyFamily, every, "svc.test", nil, ip4 + " " + ip6},
		{PreferIPv4, every, "svc.test", nil, ip4},
		{PreferIPv6, every, "svc.test", nil, ip6},
		{PreferIPv6, no6, "svc.test", nil, ip4}, // there is no way to the better ones
		{PreferIPv6, every, "svc.test", []string{"10.0.0.1"}, "10.0.0.1:80"},
		{OnlyIPv4, every, "svc.test", nil, ip4},
		{OnlyIPv6, no6, "svc.test", nil, ip6},
		{OnlyIPv6, every, "svc.test", []string{"10.0.0.1"}, "no list"},
		{OnlyIPv4, every, "svc.test", []string{"fd00::1"}, "no list"},
		{OnlyIPv6, every, "localhost", []string{"127.0.0.1", "::1"}, "[::1]:80"},
		{PreferIPv4, every, "localhost", []string{"127.0.0.1", "::1"}, "127.0.0.1:80"},
	} {
		synctest.Test(t, func(t *testing.T) {
			z := &zone{}
			if c.ips == nil {
				c.ips = []string{"fd00::1", "10.0.0.2", "10.0.0.1"}
			}
			z.set(nil, c.ips...)
			watching(t, &DNS{Lookup: z.lookup, Family: c.family, hasRoute: c.route}, c.host, func(n *noted) {
				got, err := n.text()
				var de *net.DNSError
				if got != c.want || (c.want == "no list") != (errors.As(err, &de) && de.IsNotFound) {
					t.Errorf("family %d of %v: %s, %v, want %s", c.family, c.ips, got, err, c.want)
				}
			})
		})
	}
}

func TestDNSSettingsOutOfRangeAreAllRefused(t *testing.T) {
	err := (&DNS{Interval: 1, ForgetAfter: 1, Family: 9}).Validate()
	for _, want := range []string{"DNS.Interval is 1ns, want 0 or at least 5s", "DNS.ForgetAfter is 1ns, want 0 or at least 1s", "DNS.Family is 9, want 0 to 4"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %q in it", err, want)
		}
	}
}

// A server of one's own is asked through a net.Resolver.
func TestDNSAsksTheResolverItIsGiven(t *testing.T) {
	errDial := errors.New("no such server")
	r := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errDial }}
	for _, r := range []Resolver{&DNS{Resolver: r}, &SRV{DNS: DNS{Resolver: r}}} {
		tr := &Transport{Resolver: r}
		_, err := tr.RoundTrip(request(t, "GET", "http://orders.invalid/", nil))
		var de *net.DNSError
		if !errors.As(err, &de) || !strings.Contains(err.Error(), errDial.Error()) {
			t.Errorf("%T: %v, want %v", r, err, errDial)
		}
		tr.Close()
	}
}
