package grpcbalancer

import (
	"slices"
	"testing"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/resolver"
)

func TestKeyOf(t *testing.T) {
	for _, c := range []struct {
		addrs []string
		want  string
	}{
		{nil, ""},
		{[]string{"10.0.0.1:80"}, "10.0.0.1:80"},
		{[]string{"[::1]:80", "10.0.0.1:80"}, "10.0.0.1:80,[::1]:80"},
		{[]string{"10.0.0.1:80", "[::1]:80"}, "10.0.0.1:80,[::1]:80"},
		{[]string{"b", "a", "b"}, "a,b"},
		{[]string{"[fe80::1%eth0]:80"}, "[fe80::1%eth0]:80"},
		{[]string{""}, `""`},
		{[]string{"a,b"}, `"a,b"`},
		{[]string{`"a`}, `"\"a"`},
		{[]string{"", "a,b", "c"}, `"","a,b",c`},
	} {
		if got := keyOf(at(c.addrs...)); got != c.want {
			t.Errorf("%q: key %s, want %s", c.addrs, got, c.want)
		}
	}
}

// Different sets of addresses have different keys, whatever is in them.
func FuzzKeyOf(f *testing.F) {
	f.Add("a", "b", "a,b", "")
	f.Add(`"a"`, "a", `"`, ",")
	f.Add("", "", "x", `\`)
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		one, two := at(a, b), at(c, d)
		same := slices.Equal(addrSet(one), addrSet(two))
		if equal := keyOf(one) == keyOf(two); equal != same {
			t.Errorf("%q and %q: keys %s and %s", addrSet(one), addrSet(two), keyOf(one), keyOf(two))
		}
		if keyOf(at(a)) == keyOf(at(c, d)) && !slices.Equal(addrSet(at(a)), addrSet(two)) {
			t.Errorf("%q and %q have the same key", a, addrSet(two))
		}
	})
}

func addrSet(e resolver.Endpoint) []string {
	var s []string
	for _, a := range e.Addresses {
		s = append(s, a.Addr)
	}
	slices.Sort(s)
	return slices.Compact(s)
}

func TestSameForChild(t *testing.T) {
	type key struct{}
	attr := attributes.New(key{}, "x")
	with := func(change func(*resolver.Endpoint)) resolver.Endpoint {
		e := at("a", "b")
		change(&e)
		return e
	}
	for _, c := range []struct {
		name string
		to   resolver.Endpoint
		want bool
	}{
		{"equal", at("a", "b"), true},
		{"equal attributes of an address", with(func(e *resolver.Endpoint) { e.Addresses[0].Attributes = nil }), true},
		{"order: the first address is tried first", at("b", "a"), false},
		{"fewer addresses", at("a"), false},
		{"server name", with(func(e *resolver.Endpoint) { e.Addresses[1].ServerName = "s" }), false},
		{"attributes of an address", with(func(e *resolver.Endpoint) { e.Addresses[1].Attributes = attr }), false},
		{"attributes", with(func(e *resolver.Endpoint) { e.Attributes = attr }), false},
		// Comparing these ends a program.
		{"attributes that cannot be compared", with(func(e *resolver.Endpoint) {
			e.Attributes = attributes.New(key{}, map[string]int{})
		}), false},
	} {
		if got := sameForChild(at("a", "b"), c.to); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
