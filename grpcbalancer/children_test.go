package grpcbalancer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
)

// child is a child that notes what it is told, instead of pick_first. Like pick_first
// it reports inline.
type child struct {
	cc   balancer.ClientConn
	told *[]string
	addr string
}

func (c *child) note(what string) { *c.told = append(*c.told, what+" "+c.addr) }

func (c *child) UpdateClientConnState(s balancer.ClientConnState) error {
	c.addr = s.ResolverState.Endpoints[0].Addresses[0].Addr
	c.note("update")
	c.cc.UpdateState(balancer.State{ConnectivityState: connectivity.Ready, Picker: queue{}})
	if strings.HasPrefix(c.addr, "bad") {
		return errors.New(c.addr)
	}
	return nil
}

func (c *child) ResolverError(error)                                        { c.note("error") }
func (c *child) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}
func (c *child) Close()                                                     { c.note("close") }
func (c *child) ExitIdle()                                                  { c.note("exit") }

// withChildren returns a policy with such children, and what they are told.
func withChildren(t *testing.T) (*policy, *fakeChannel, *[]string) {
	c, told := newFakeChannel(), new([]string)
	b := builder{
		rand: func() uint64 { return 0 },
		child: func(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
			return &child{cc: cc, told: told}
		},
	}
	p := b.Build(c, balancer.BuildOptions{}).(*policy)
	t.Cleanup(p.Close)
	return p, c, told
}

func TestOnlyChildrenThatSomethingChangedForAreCalled(t *testing.T) {
	type key struct{}
	p, c, told := withChildren(t)
	attrs := attributes.New(key{}, 1)
	update := func(attrs *attributes.Attributes, list ...resolver.Endpoint) []string {
		t.Helper()
		*told = nil
		state := stateOf(list)
		state.ResolverState.Attributes = attrs
		if err := p.UpdateClientConnState(state); err != nil {
			t.Fatal(err)
		}
		return *told
	}
	labelled := at("b")
	labelled.Attributes = attrs
	for _, s := range []struct {
		what  string
		attrs *attributes.Attributes
		list  []resolver.Endpoint
		want  []string
	}{
		{"first list", attrs, each("a", "b", "c"), []string{"update a", "update b", "update c"}},
		{"the same", attrs, each("a", "b", "c"), nil},
		{"another order", attrs, each("c", "b", "a"), nil},
		{"attributes of one", attrs, []resolver.Endpoint{at("a"), labelled, at("c")}, []string{"update b"}},
		{"one more", attrs, []resolver.Endpoint{at("a"), labelled, at("c"), at("d")}, []string{"update d"}},
		{"one less", attrs, []resolver.Endpoint{at("a"), labelled, at("d")}, []string{"close c"}},
		{"attributes of the list", nil, []resolver.Endpoint{at("a"), labelled, at("d")}, []string{"update a", "update b", "update d"}},
	} {
		before := c.publications()
		if got := update(s.attrs, s.list...); !slices.Equal(got, s.want) {
			t.Errorf("%s: %q, want %q", s.what, got, s.want)
		}
		if n := c.publications() - before; n > 1 {
			t.Errorf("%s: %d publications, want one at most", s.what, n)
		}
	}
}

func TestEveryChildHearsOfItsEndpointInSpiteOfAnothersError(t *testing.T) {
	p, _, told := withChildren(t)
	err := p.UpdateClientConnState(stateOf(each("bad1", "a", "bad2")))
	if err == nil || err.Error() != "bad1" {
		t.Errorf("error %v, want the first", err)
	}
	if fmt.Sprint(*told) != "[update bad1 update a update bad2]" {
		t.Errorf("%q", *told)
	}
}

func TestChildrenAreToldOfErrorsAndClosedOnce(t *testing.T) {
	p, _, told := withChildren(t)
	_ = p.UpdateClientConnState(stateOf(each("a")))
	*told = nil
	p.ResolverError(errors.New("x"))
	p.ExitIdle() // it is not idle
	p.Close()
	p.Close()
	p.ResolverError(errors.New("x"))
	p.ExitIdle()
	_ = p.UpdateClientConnState(stateOf(each("a", "b")))
	if fmt.Sprint(*told) != "[error a close a]" {
		t.Errorf("%q", *told)
	}
}
