package grpcbalancer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
)

// noted is a follower that notes what it is told, and which connections it has.
type noted struct {
	name string
	mu   sync.Mutex
	told []string
	has  map[string]string // endpoint → address
}

func (n *noted) onReady(c *seat, sc balancer.SubConn) func() {
	e := c.endpoint
	n.mu.Lock()
	defer n.mu.Unlock()
	addr := sc.(*fakeConn).addr
	n.told = append(n.told, "ready "+addr)
	if n.has == nil {
		n.has = map[string]string{}
	}
	if was, twice := n.has[e.key]; twice {
		n.told = append(n.told, "twice: "+was)
	}
	n.has[e.key] = addr
	return sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.told = append(n.told, "lost "+addr)
		if n.has[e.key] == addr {
			delete(n.has, e.key)
		}
	})
}

// news returns what it was told since the last time.
func (n *noted) news() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	told := strings.Join(n.told, ", ")
	n.told = nil
	return told
}

// followed makes f the followers of the rig's policy.
func (r *rig) followed(f ...follower) {
	r.policy.calls.Lock()
	defer r.policy.calls.Unlock()
	r.policy.also = f
	r.policy.refollow()
}

func wantNews(t *testing.T, what string, n *noted, want string) {
	t.Helper()
	if got := n.news(); got != want {
		t.Errorf("%s: %s was told %q, want %q", what, n.name, got, want)
	}
}

func TestFollowersLearnOfTheConnectionInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := newRig(t, ""), &noted{name: "f"}
		r.followed(f)
		r.manual = true
		r.update(at("10.0.0.1:1", "10.0.0.2:1"), at("10.0.0.3:1"))
		time.Sleep(300 * time.Millisecond) // happy eyeballs try the second address
		r.settle()
		first, second, other := r.conn("10.0.0.1:1"), r.conn("10.0.0.2:1"), r.conn("10.0.0.3:1")
		wantNews(t, "connecting", f, "")
		second.becomes(connectivity.Ready, nil)
		r.settle()
		wantNews(t, "the second won", f, "ready 10.0.0.2:1")
		if !first.shut {
			t.Fatal("the loser is still there")
		}
		first.listener(balancer.SubConnState{ConnectivityState: connectivity.Ready}) // it was too late
		first.listener(balancer.SubConnState{ConnectivityState: connectivity.Shutdown})
		wantNews(t, "the loser", f, "")
		other.becomes(connectivity.Ready, nil)
		r.settle()
		wantNews(t, "the other endpoint", f, "ready 10.0.0.3:1")
		second.becomes(connectivity.Idle, nil)
		r.settle()
		wantNews(t, "lost", f, "lost 10.0.0.2:1")
		r.conn("10.0.0.1:1").becomes(connectivity.Ready, nil)
		r.settle()
		wantNews(t, "back by the other address", f, "ready 10.0.0.1:1")
		r.update(at("10.0.0.3:1"))
		wantNews(t, "the endpoint left", f, "lost 10.0.0.1:1")
		r.policy.Close()
		wantNews(t, "closed", f, "lost 10.0.0.3:1")
		other.listener(balancer.SubConnState{ConnectivityState: connectivity.Ready})
		wantNews(t, "after the end", f, "")
	})
}

func TestFollowersComeAndGoWhileConnectionsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, a, b := newRig(t, ""), &noted{name: "a"}, &noted{name: "b"}
		r.followed(a)
		r.up(at("x"))
		wantNews(t, "first", a, "ready x")
		r.followed(a, b)
		wantNews(t, "one more", a, "")
		wantNews(t, "one more", b, "ready x")
		r.followed(b, a)
		wantNews(t, "another order", a, "")
		wantNews(t, "another order", b, "")
		r.followed(b)
		wantNews(t, "one less", a, "lost x")
		wantNews(t, "one less", b, "")
		r.followed()
		wantNews(t, "none", b, "lost x")
		r.conn("x").becomes(connectivity.Idle, nil)
		r.settle()
		r.followed(a)
		wantNews(t, "one anew", a, "ready x")
		r.policy.Close()
		wantNews(t, "closed", a, "lost x")
		r.followed(b)
		wantNews(t, "after the end", b, "")
	})
}

// What pick_first made of it is what picks return: the channel's own.
func TestPicksReturnTheChannelsOwnConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.followed(&noted{})
		r.up(at("x"))
		result, err := r.pick()
		if err != nil || result.SubConn != balancer.SubConn(r.conn("x")) {
			t.Errorf("picked %v, %v", result.SubConn, err)
		}
		result.Done(succeeded)
	})
}

// However events come, the follower has the connections that picks use, and no others.
func TestFollowersHaveWhatPicksUseAfterRandomEvents(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { followRandomEvents(t, rand.New(rand.NewPCG(seed, 2))) })
		})
	}
}

func followRandomEvents(t *testing.T, rnd *rand.Rand) {
	r, f := newRig(t, `{"policy": "round_robin"}`), &noted{name: "f"}
	r.followed(f)
	r.manual = true
	names := strings.Split("abcdefgh", "")
	for range 300 {
		switch c := r.conn(names[rnd.IntN(len(names))]); {
		case rnd.IntN(5) == 0:
			rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			list := each(names[:rnd.IntN(4)]...)
			if rnd.IntN(2) == 0 {
				list = append(list, at(names[4:7]...))
			}
			_ = r.send(list)
		case c == nil:
		default:
			c.becomes([]connectivity.State{connectivity.Idle, connectivity.Connecting, connectivity.Ready,
				connectivity.TransientFailure}[rnd.IntN(4)], errors.New("connection"))
		}
		if rnd.IntN(8) == 0 {
			time.Sleep(300 * time.Millisecond) // happy eyeballs
		}
		if rnd.IntN(3) > 0 {
			r.settle()
			r.passWindow()
			checkFollowed(t, r, f)
		}
	}
	r.policy.Close()
	if len(f.has) > 0 {
		t.Errorf("still followed after Close: %v", f.has)
	}
	if slices.ContainsFunc(f.told, func(s string) bool { return strings.HasPrefix(s, "twice") }) {
		t.Errorf("two connections of one endpoint: %v", f.told)
	}
}

// checkFollowed compares what a follower has with what the children's own pickers return.
func checkFollowed(t *testing.T, r *rig, f *noted) {
	t.Helper()
	want := map[string]string{}
	for key, e := range r.policy.children {
		if e.is(connectivity.Ready) {
			result, err := e.state.Load().Picker.Pick(balancer.PickInfo{})
			if err != nil {
				t.Fatal(err)
			}
			want[key] = result.SubConn.(*fakeConn).addr
		}
	}
	for key, addr := range want {
		if f.has[key] != addr {
			t.Fatalf("%s: picks use %q and %q is followed", key, addr, f.has[key])
		}
	}
	for key, addr := range f.has {
		if want[key] == "" {
			t.Fatalf("%s: %q is followed and no pick uses it", key, addr)
		}
	}
}
