package grpcbalancer

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/evenkeel/evenkeel"
)

// hostileList has in it what no resolver should send, and how many endpoints of it count.
func hostileList() (list []resolver.Endpoint, count int) {
	type key struct{}
	long := strings.Repeat("x", 1<<20)
	strange := []resolver.Endpoint{
		at(""), at("", ""), at(" "), at("\x00"), at("\xff\xfe"), at(long), at(long + "y"), at("a,b"), at("a", "b"), at("b", "a", "b"),
		at(`"a"`), at(`a"`), at("[::1"), at("%zz"), at("host:99999"), at("-1"), at("\r\nx: y"), at("..", "/", "unix:"),
	}
	count = len(strange) - 2 // one more of "", and one of "a" and "b"
	many := resolver.Endpoint{Addresses: make([]resolver.Address, 0, 10_000)}
	for range cap(many.Addresses) {
		many.Addresses = append(many.Addresses, resolver.Address{Addr: "same"})
	}
	for i, w := range []uint32{math.MaxUint32, 1, 0, 1 << 31} {
		e := weight.Set(at(strings.Repeat("w", i+1)), weight.EndpointInfo{Weight: w})
		e.Attributes = e.Attributes.WithValue(key{}, func() {}) // cannot be compared
		list = append(list, e, e, e)
		count++
	}
	list = append(list, resolver.Endpoint{}, many, resolver.Endpoint{Attributes: attributes.New(key{}, map[int]int{}), Addresses: []resolver.Address{}})
	return append(list, strange...), count + 1
}

// Under every policy: each endpoint of it that counts is there once, and calls are served, again and again.
func TestListsWithAnythingInThemAreServed(t *testing.T) {
	for _, c := range everyPolicy {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, `{"policy": `+c.policy+`}`)
			list, count := hostileList()
			r.up(list...)
			if n := len(statsOf(r.policy)); n != count || r.opened < count {
				t.Fatalf("%s: %d endpoints, %d connections, want %d", c.policy, n, r.opened, count)
			}
			opened := r.opened
			r.up(list...)
			if r.opened != opened {
				t.Errorf("%s: %d connections more for the same list", c.policy, r.opened-opened)
			}
			for i := range 500 {
				_, done := r.pickFor(evenkeel.WithKey(context.Background(), strings.Repeat("k", i)))
				done(outcomes[i%4])
			}
			for key, s := range statsOf(r.policy) {
				if s.InFlight != 0 || !(s.Weight >= 1 && s.Weight <= math.MaxUint32) || math.IsNaN(s.Success) || !(s.Share >= 0) {
					t.Errorf("%s: %.20q: %+v", c.policy, key, s)
				}
			}
			if err := r.send([]resolver.Endpoint{{}, {}}); !errors.Is(err, balancer.ErrBadResolverState) {
				t.Errorf("%s: a list without an address: %v", c.policy, err)
			}
		})
	}
}
