package grpcbalancer

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/subset"
)

// fourOf is a config with subsets of four, two of which have to be READY.
const fourOf = `{"subset": {"size": 4, "seed": 9, "min_available": 2}}`

// manyAt returns n endpoints.
func manyAt(n int) []resolver.Endpoint {
	list := make([]resolver.Endpoint, n)
	for i := range list {
		list[i] = at(fmt.Sprintf("s%d", i))
	}
	return list
}

// openAddrs are the addresses that there are connections to, sorted.
func (r *rig) openAddrs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var open []string
	for addr, c := range r.conns {
		if !c.shut {
			open = append(open, addr)
		}
	}
	slices.Sort(open)
	return open
}

// lose ends connections; attempts fail until back is called.
func (r *rig) lose(addrs ...string) {
	r.mu.Lock()
	r.dial = func(addr string) error {
		if slices.Contains(addrs, addr) {
			return errors.New("refused")
		}
		return nil
	}
	r.mu.Unlock()
	for _, a := range addrs {
		if c := r.conn(a); c != nil {
			c.becomes(connectivity.Idle, nil)
		}
	}
	r.settle()
}

// back lets all connect again, and the back-off of those that could not is over.
func (r *rig) back() {
	r.mu.Lock()
	r.dial = nil
	r.mu.Unlock()
	r.policy.calls.Lock()
	listed := r.policy.listed
	r.policy.calls.Unlock()
	for _, a := range r.openAddrs() {
		if e := listed[a]; e != nil && !e.is(connectivity.Ready) {
			r.conn(a).becomes(connectivity.Idle, nil)
		}
	}
	r.settle()
}

// passing lets time pass in steps in which events are delivered.
func (r *rig) passing(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
		r.settle()
	}
}

func TestOnlySelectedEndpointsHaveConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fourOf)
		r.up(manyAt(40)...)
		open := r.openAddrs()
		if len(open) != 4 || r.opened != 4 || len(r.policy.children) != 4 {
			t.Fatalf("connections to %v, %d ever opened, %d children, want 4 of each", open, r.opened, len(r.policy.children))
		}
		if got := r.shares(400); len(got) != 4 {
			t.Errorf("calls went to %v, want the four", got)
		}
		r.passing(10 * time.Second)
		if r.opened != 4 {
			t.Errorf("%d connections were opened in ten quiet seconds, want 4", r.opened)
		}
		// Off, everybody is connected; on again, the same four stay.
		r.config = parse(t, `{}`)
		r.up(manyAt(40)...)
		if n := len(r.openAddrs()); n != 40 || r.opened != 40 {
			t.Errorf("%d open and %d ever opened without subsets, want 40", n, r.opened)
		}
		r.config = parse(t, fourOf)
		r.up(manyAt(40)...)
		if got := r.openAddrs(); !slices.Equal(got, open) || r.opened != 40 {
			t.Errorf("connections to %v, %d ever opened, want %v and 40", got, r.opened, open)
		}
	})
}

// A client for whom there is nobody in its lot connects to somebody all the same.
func TestNoChannelIsWithoutAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for index := range 16 {
			r := newRig(t, fmt.Sprintf(`{"subset": {"client_index": %d, "lot_size": 64, "min_available": -1}}`, index))
			r.up(manyAt(5)...)
			if got := r.shares(10); len(got) == 0 || r.state() != connectivity.Ready {
				t.Errorf("client %d: %v, %v", index, r.state(), got)
			}
			r.policy.Close()
		}
	})
}

// A child is not even called when nothing changed for it, whoever else is listed.
func TestAttributesOfOthersReachNoChild(t *testing.T) {
	type key struct{}
	p, _, told := withChildren(t)
	config := parse(t, fourOf)
	update := func(list []resolver.Endpoint) []string {
		*told = nil
		state := stateOf(list)
		state.BalancerConfig = config
		if err := p.UpdateClientConnState(state); err != nil {
			t.Fatal(err)
		}
		return slices.Clone(*told)
	}
	first := update(manyAt(40))
	if len(first) != 4 {
		t.Fatalf("told %v, want four first updates", first)
	}
	list := manyAt(40)
	for i := range list {
		if slices.Contains(first, "update "+list[i].Addresses[0].Addr) {
			list[i] = weight.Set(list[i], weight.EndpointInfo{})
			continue
		}
		list[i] = weight.Set(list[i], weight.EndpointInfo{Weight: uint32(i + 1)})
		list[i].Attributes = list[i].Attributes.WithValue(key{}, i)
	}
	slices.Reverse(list)
	got := update(list)
	slices.Sort(first)
	slices.Sort(got)
	if !slices.Equal(got, first) { // those with new attributes, and they alone
		t.Errorf("told %v, want %v", got, first)
	}
	if got := update(list); got != nil {
		t.Errorf("told %v of the same list", got)
	}
	for i := range list {
		if !slices.Contains(first, "update "+list[i].Addresses[0].Addr) {
			list[i].Attributes = attributes.New(key{}, -i)
		}
	}
	if got := update(list); got != nil {
		t.Errorf("told %v of attributes of others", got)
	}
}

func TestSubsetIsToppedUpPromptlyAndGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fourOf)
		r.up(manyAt(40)...)
		r.passing(2 * time.Second)
		four := r.openAddrs()
		r.lose(four[0], four[1])
		r.passing(5 * time.Second)
		if got := r.openAddrs(); !slices.Equal(got, four) {
			t.Errorf("connections to %v with two of four READY, want %v", got, four)
		}
		r.lose(four[0], four[1], four[2])
		r.passing(600 * time.Millisecond)
		more := r.openAddrs()
		if len(more) != 5 || r.policy.pool.Stats().Ready != 2 {
			t.Fatalf("connections to %v, %d READY, want one more than %v, and 2", more, r.policy.pool.Stats().Ready, four)
		}
		if got := r.shares(200); len(got) != 2 {
			t.Errorf("calls went to %v, want the two that are READY", got)
		}
		added := slices.DeleteFunc(slices.Clone(more), func(a string) bool { return slices.Contains(four, a) })[0]
		held := r.pickedOn(added)

		r.back()
		r.passing(45 * time.Second)
		if got := r.openAddrs(); !slices.Equal(got, more) {
			t.Errorf("connections to %v soon after, want %v", got, more)
		}
		r.passing(time.Minute)
		if got := r.openAddrs(); !slices.Equal(got, four) {
			t.Errorf("connections to %v at last, want %v", got, four)
		}
		held(succeeded) // on the connection that drains
		for id, s := range statsOf(r.policy) {
			if s.InFlight != 0 || s.State != 0 {
				t.Errorf("%s: %+v, want it READY and at rest", id, s)
			}
		}
		// Selected once more it starts anew, and what its former child has to say is nothing.
		r.policy.calls.Lock()
		old := r.policy.listed[added].seat
		r.policy.calls.Unlock()
		r.lose(four[0], four[1], four[2])
		r.passing(2 * time.Second)
		if got := r.openAddrs(); !slices.Equal(got, more) || r.policy.pool.Stats().Ready != 2 {
			t.Errorf("connections to %v the second time, want %v", got, more)
		}
		old.UpdateState(balancer.State{ConnectivityState: connectivity.TransientFailure, Picker: queue{}})
		if got := r.shares(200); len(got) != 2 || got[added] == 0 {
			t.Errorf("calls went to %v after a late report, want %s among them", got, added)
		}
	})
}

// Between the pool's change of mind and the policy's, a child that is about to leave may have been
// published as READY. That must not count when the endpoint is selected again.
func TestWhatALeavingChildSaidLastIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, `{}`)
		r.up(manyAt(8)...)
		if err := r.policy.pool.SetConfig(parse(t, fourOf).(*lbConfig).config); err != nil {
			t.Fatal(err)
		}
		for _, e := range manyAt(8) {
			r.policy.pool.SetState(e.Addresses[0].Addr, evenkeel.Ready)
		}
		r.config = parse(t, fourOf)
		r.up(manyAt(8)...)
		r.manual = true
		r.config = parse(t, `{}`)
		r.up(manyAt(8)...)
		if n := r.policy.pool.Stats().Ready; n != 4 || len(r.openAddrs()) != 8 {
			t.Errorf("%d are READY while four of %d connections are being made, want 4", n, len(r.openAddrs()))
		}
	})
}

// A sweep that selects others has no news of the resolver, and takes none back.
func TestSweepsKeepTheResolversError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fourOf)
		r.dial = func(string) error { return errors.New("refused") }
		r.update(manyAt(40)...)
		r.policy.ResolverError(errors.New("lookup failed"))
		r.passing(4 * time.Second)
		if r.opened != 6 {
			t.Fatalf("%d connections were tried, want four and two more", r.opened)
		}
		if _, err := r.pick(); err == nil || !strings.HasPrefix(err.Error(), "evenkeel: fake:///orders: ") || !strings.Contains(err.Error(), "lookup failed") {
			t.Errorf("%v, want what the resolver said, and of which channel", err)
		}
	})
}

// While connections come up nobody is called missing.
func TestSlowStartsAreNoReasonToTopUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fourOf)
		r.manual = true
		r.update(manyAt(40)...)
		r.passing(2500 * time.Millisecond)
		if r.opened != 4 {
			t.Errorf("%d connections were opened in 2.5 s, want 4", r.opened)
		}
		r.passing(time.Second)
		if r.opened != 6 {
			t.Errorf("%d connections were opened when none had come up after 3 s, want 6", r.opened)
		}
		r.passing(time.Hour)
		if open := r.openAddrs(); len(open) != 8 {
			t.Errorf("%v are open where nothing can be reached, want eight", open)
		}
	})
}

// Where nothing can be reached, there are at most as many connections again as the size, and two of
// them make room for others once a minute, until somebody is found.
func TestOthersAreTriedWhileNobodyCanBeReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fourOf)
		var all []string
		for i := range 40 {
			all = append(all, fmt.Sprintf("s%d", i))
		}
		r.lose(all...)
		r.update(manyAt(40)...)
		r.passing(50 * time.Second)
		early := r.openAddrs()
		if len(early) != 8 || r.opened != 8 {
			t.Errorf("%v open, %d opened in less than a minute, want 8", early, r.opened)
		}
		r.passing(10 * time.Minute)
		if open := r.openAddrs(); len(open) != 8 || r.opened < 8+2*9 || r.opened > 8+2*11 {
			t.Errorf("%v open, %d opened in ten minutes, want 8 and two more a minute", open, r.opened)
		}
		r.lose(early...) // all others can be reached from now on
		r.passing(2 * time.Minute)
		if r.wantState(connectivity.Ready); !slices.ContainsFunc(r.openAddrs(), func(a string) bool { return !slices.Contains(early, a) }) {
			t.Errorf("%v open, none of which can be reached", r.openAddrs())
		}
		was := r.opened
		if r.passing(10 * time.Minute); r.opened > was+2 {
			t.Errorf("%d connections were opened after somebody was found", r.opened-was)
		}
	})
}

func TestSubsetOfJSONIsTheDefaultDealAndSurvivesParents(t *testing.T) {
	for text, want := range map[string]*subset.Config{
		`{"subset": {}}`: {},
		`{"subset": {"client_index": 0, "size": 30, "seed": "18446744073709551615"}}`: {Size: 30, Seed: 1<<64 - 1, ClientIndex: subset.IndexOf(0)},
		fourOf: {Size: 4, Seed: 9, MinAvailable: 2},
	} {
		handed, err := json.Marshal(parse(t, text))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []loadBalancingConfig{parse(t, text), parse(t, string(handed))} {
			if got := c.(*lbConfig).config.Subset; !reflect.DeepEqual(got, want) {
				t.Errorf("%s became %s: %+v, want %+v", text, handed, got, want)
			}
		}
	}
}

// A wrong subset is refused where it is parsed, so that gRPC keeps the last good config; that
// includes an index that is not there.
func TestWrongSubsetsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"subset": {"size": -4}}`:                                 "grpcbalancer: subset: Config.Size is -4",
		`{"subset": {"client_index_env": "EVENKEEL_TEST_UNSET"}}`:  `grpcbalancer: subset: Index.Variable is "EVENKEEL_TEST_UNSET", which is not set`,
		`{"subset": {"client_index": 5, "client_count": 5}}`:       "grpcbalancer: subset: Config.ClientIndex is 5, want less than",
		`{"subset": {"algorithm": "aperture", "client_index": 1}}`: "grpcbalancer: subset: Config.ClientCount is 0",
	} {
		if _, err := (builder{}).ParseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	t.Setenv("EVENKEEL_TEST_SET", "web-7")
	parse(t, `{"subset": {"client_index_env": "EVENKEEL_TEST_SET"}}`)
}
