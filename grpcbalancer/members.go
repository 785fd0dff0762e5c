package grpcbalancer

import (
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/resolver"
)

// keyOf returns an endpoint's identity over updates: its distinct addresses, sorted
// and joined by commas. Attributes and the order of the addresses are not part of
// it. An address that could be mistaken for two is quoted, so that different sets
// have different keys. The result is empty only for an endpoint without addresses.
func keyOf(endpoint resolver.Endpoint) string {
	switch len(endpoint.Addresses) {
	case 0:
		return ""
	case 1:
		return plain(endpoint.Addresses[0].Addr)
	}
	addrs := make([]string, len(endpoint.Addresses))
	for i, a := range endpoint.Addresses {
		addrs[i] = plain(a.Addr)
	}
	slices.Sort(addrs)
	return strings.Join(slices.Compact(addrs), ",")
}

func plain(addr string) string {
	if addr == "" || strings.ContainsAny(addr, `,"`) {
		return strconv.Quote(addr)
	}
	return addr
}

// keyed is an endpoint of one resolver update with its key.
type keyed struct {
	key      string
	endpoint resolver.Endpoint
}

// distinct returns the endpoints that count: those with an address, and of several
// with the same key the first. The argument stays as it is.
func distinct(endpoints []resolver.Endpoint) []keyed {
	list := make([]keyed, 0, len(endpoints))
	seen := make(map[string]struct{}, len(endpoints))
	for _, e := range endpoints {
		key := keyOf(e)
		if key == "" {
			continue
		}
		if _, dup := seen[key]; dup {
			continue
		}
		seen[key] = struct{}{}
		list = append(list, keyed{key, e})
	}
	return list
}

// owned returns a copy whose addresses the caller of UpdateClientConnState cannot
// change any more; parents may reuse their slices.
func owned(endpoint resolver.Endpoint) resolver.Endpoint {
	endpoint.Addresses = slices.Clone(endpoint.Addresses)
	return endpoint
}

// sameForChild reports whether a child that knows a learns nothing from b. Attributes
// of the endpoint are told apart by identity: a false alarm costs one call of the
// child, while comparing contents ends the process on values that Go cannot compare.
func sameForChild(a, b resolver.Endpoint) bool {
	return a.Attributes == b.Attributes &&
		slices.EqualFunc(a.Addresses, b.Addresses, func(a, b resolver.Address) bool {
			// What pick_first tells addresses apart by, and in the same way.
			return a.Addr == b.Addr && a.ServerName == b.ServerName && a.Attributes.Equal(b.Attributes)
		})
}
