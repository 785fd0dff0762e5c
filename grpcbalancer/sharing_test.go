package grpcbalancer

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/testcost"
)

// share has policies share during a test, and nothing be left of it.
func share(t *testing.T) {
	Share(true)
	t.Cleanup(func() {
		Share(false)
		commons.mu.Lock()
		defer commons.mu.Unlock()
		if n := len(commons.known); n != 0 {
			t.Errorf("%d pools are shared by nobody", n)
		}
	})
}

// sharesWith reports whether two policies share what they know.
func (p *policy) sharesWith(o *policy) bool {
	return p.keepsake.common != nil && p.keepsake.common == o.keepsake.common
}

// channels are two rigs to one target that share, with these endpoints READY.
func channels(t *testing.T, config string, names ...string) (one, two *rig) {
	t.Helper()
	one, two = newRig(t, config), newRig(t, config)
	one.up(each(names...)...)
	two.up(each(names...)...)
	if !one.policy.sharesWith(two.policy) {
		t.Fatal("they do not share")
	}
	return one, two
}

func TestAChannelThatJoinsKnowsWhatTheOthersLearnt(t *testing.T) {
	for _, config := range []string{`{}`, `{"policy": "round_robin"}`, `{"policy": {"p2c": {}}}`} {
		synctest.Test(t, func(t *testing.T) {
			share(t)
			one, open := taught(t, config)
			two := newRig(t, config)
			two.up(each("a", "b", "c", "d")...)
			if a := two.stats("a"); a.Picks != 11 || a.InFlight != 1 || a.State != evenkeel.Ready {
				t.Errorf("%s: a is %+v", config, a)
			}
			if got := two.shares(60); got["a"] > 11 { // of 15; some are there to find out
				t.Errorf("%s: its first calls go to %v, and a, which is slow and fails, would have a quarter", config, got)
			}
			open(succeeded)
			if a := two.stats("a"); a.InFlight != 0 {
				t.Errorf("%d in flight at rest", a.InFlight)
			}
			one.policy.Close()
			two.wantState(connectivity.Ready)
			if got := two.shares(30); got["a"] > 6 || two.stats("a").Picks < 11 {
				t.Errorf("%s: after the other is closed calls go to %v", config, got)
			}
			two.policy.Close()
		})
	}
}

func TestChannelsThatShareSeeWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share(t)
		one, two := channels(t, `{"policy": "least"}`, "a", "b", "c")
		for range 10 {
			one.pickedOn("a")
		}
		for range 18 {
			if addr, _ := two.picked(); addr == "a" {
				t.Fatal("a call goes where the other channel has ten")
			}
		}
		if got := two.stats("a").InFlight + two.stats("b").InFlight + two.stats("c").InFlight; got != 28 {
			t.Errorf("%d in flight, want those of both", got)
		}
	})
}

// Each picks its own connections alone, whatever the others have.
func TestChannelsThatShareHaveTheirOwnConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share(t)
		one, two := channels(t, `{"policy": "round_robin"}`, "a", "b", "c")
		two.dial = func(string) error { return errors.New("no way") }
		two.conn("a").becomes(connectivity.TransientFailure, errors.New("gone"))
		two.settle()
		two.passWindow()
		if got := two.shares(30); got["a"] != 0 || got["b"] != 15 || got["c"] != 15 {
			t.Errorf("without a connection to a calls go to %v", got)
		}
		if got := one.shares(30); got["a"] != 10 {
			t.Errorf("with one they go to %v", got)
		}
		for range 50 {
			result, err := one.pick()
			if err != nil || result.SubConn.(*fakeConn).channel != one.fakeChannel {
				t.Fatalf("%v, on a connection of its own: %v", err, err == nil)
			}
			result.Done(succeeded)
		}
		two.up(each("b", "c")...) // its list alone
		if got := one.shares(30); got["a"] != 10 {
			t.Errorf("after another channel's list had lost a, calls go to %v", got)
		}
	})
}

// Who does not have the same target, authority, config and endpoints does not share, nor who was not asked to.
func TestWhoDoesNotShare(t *testing.T) {
	other := resolver.Target{URL: url.URL{Scheme: "fake", Path: "/invoices"}}
	for what, c := range map[string]struct {
		off        bool
		one, two   string
		target     resolver.Target
		authority  string
		names      []string
		alsoBefore bool
	}{
		"not asked for":            {off: true},
		"asked for too late":       {alsoBefore: true},
		"another config":           {two: `{"policy": "round_robin"}`},
		"a subset":                 {one: `{"subset": {}}`, two: `{"subset": {}}`},
		"another target":           {target: other},
		"another authority":        {authority: "x"},
		"no endpoint in common":    {names: []string{"d", "e"}},
		"a target that is unknown": {target: resolver.Target{}},
	} {
		synctest.Test(t, func(t *testing.T) {
			if !c.off && !c.alsoBefore {
				share(t)
			}
			if c.target.URL.Scheme == "" && what != "a target that is unknown" {
				c.target = fakeTarget
			}
			if c.names == nil {
				c.names = []string{"a", "b", "c"}
			}
			one := newRig(t, c.one)
			if c.target.URL.Scheme == "" {
				one.policy.opts.Target = c.target
			}
			one.up(each("a", "b", "c")...)
			if c.alsoBefore {
				share(t)
			}
			two := newRig(t, c.two)
			two.policy.opts = balancer.BuildOptions{Target: c.target, Authority: c.authority}
			two.up(each(c.names...)...)
			one.pickedOn("a")
			if one.policy.keepsake.common != nil && c.target.URL.Scheme == "" || one.policy.sharesWith(two.policy) || statsOf(two.policy)["a"].Picks != 0 {
				t.Errorf("%s: they share", what)
			}
			one.policy.Close()
			two.policy.Close()
		})
	}
}

// A channel whose resolver has nothing yet shares with those that it turns out to have endpoints in common with.
func TestAnEmptyListAtFirstDoesNotKeepFromSharing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share(t)
		one, two := newRig(t, `{}`), newRig(t, `{}`)
		one.up(each("a", "b")...)
		if err := two.send(nil); !errors.Is(err, balancer.ErrBadResolverState) {
			t.Fatal(err)
		}
		two.settle()
		two.up(each("b", "c")...)
		if !one.policy.sharesWith(two.policy) {
			t.Fatal("they do not share")
		}
		if got := two.shares(20); got["b"] == 0 || got["c"] == 0 || len(got) != 2 {
			t.Errorf("calls go to %v", got)
		}
		// One that had some keeps all when it has none for a while.
		two.pickedOn("b")
		_ = two.send(nil)
		two.settle()
		two.up(each("b", "c")...)
		if !one.policy.sharesWith(two.policy) || two.stats("b").InFlight != 1 {
			t.Errorf("after an empty list b is %+v", two.stats("b"))
		}
	})
}

func TestHowManyShareIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share(t)
		var all []*rig
		for range maxSharers + 2 {
			r := newRig(t, `{}`)
			r.up(each("a", "b")...)
			all = append(all, r)
		}
		first, last := all[0].policy, all[maxSharers+1].policy
		if !first.sharesWith(all[maxSharers-1].policy) || first.sharesWith(last) || !last.sharesWith(all[maxSharers].policy) {
			t.Errorf("%d share with the first, and %d with the last", first.keepsake.common.users, last.keepsake.common.users)
		}
		for _, r := range all {
			r.policy.Close()
		}
	})
}

// A new config counts for all; who insists on the old one leaves, with its connections.
func TestWhoInsistsOnAnotherConfigLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share(t)
		const before, after = `{"policy": "least"}`, `{"policy": "round_robin"}`
		one, two := channels(t, before, "a", "b", "c")
		three := newRig(t, before)
		three.up(each("a", "b", "c")...)
		open := two.pickedOn("a")

		one.config = parse(t, after)
		one.up(one.list...)
		if got := two.shares(30); got["a"] != 10 {
			t.Errorf("before it is told itself, calls go to %v", got)
		}
		two.config = parse(t, after)
		two.up(two.list...)
		if !one.policy.sharesWith(two.policy) || two.stats("a").InFlight != 1 {
			t.Error("a config that both are told keeps them from sharing")
		}
		opened := three.opened
		three.up(each("a", "b", "c", "d")...)
		if three.policy.sharesWith(one.policy) {
			t.Fatal("it was told the old config again, and shares")
		}
		if three.opened != opened+1 || three.openConns() != 4 {
			t.Errorf("%d connections were made, want that to d alone; %d are open", three.opened-opened, three.openConns())
		}
		if got := three.shares(40); len(got) != 4 || three.policy.pool.Stats().Ready != 4 {
			t.Errorf("calls go to %v", got)
		}
		four := newRig(t, before)
		four.up(each("a")...)
		if !four.policy.sharesWith(three.policy) {
			t.Error("those who have the old config do not share")
		}
		open(succeeded)
		for _, r := range []*rig{one, two, three, four} {
			r.config = parse(t, `{"subset": {}}`)
			r.up(r.list...)
			if r.policy.keepsake.common != nil || len(r.shares(20)) != len(r.list) {
				t.Error("one with a subset shares, or serves nobody")
			}
		}
	})
}

// What checks have said of endpoints is said to the next pool, too.
func TestChecksGoOnWhenAPolicyLeavesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share(t)
		one, s := newWatchedRig(t, watched)
		two := newRig(t, watched)
		two.calls = s.calls
		for _, a := range []string{"a", "b"} {
			s.say(a, serving)
		}
		s.say("c", notServing)
		one.up(each("a", "b", "c")...)
		two.up(each("a", "b", "c")...)
		two.wantServing("shared", "a", "b")
		one.config = parse(t, `{"policy": "least", "outlier": {"mode": "off"}}`)
		one.up(one.list...)
		one.wantServing("without checks", "a", "b", "c")
		two.wantServing("with its own", "a", "b")
		two.up(two.list...)
		if one.policy.sharesWith(two.policy) {
			t.Fatal("they share")
		}
		two.wantServing("alone", "a", "b")
		s.say("c", serving)
		two.settle()
		two.wantServing("all serve", "a", "b", "c")
		one.policy.Close()
		two.policy.Close()
		one.settle()
		two.settle()
		if n := s.open(); n != 0 {
			t.Errorf("%d streams are open", n)
		}
	})
}

// Streams of load reports begin anew, and tell the next pool.
func TestReportsGoToThePoolThatAPolicyHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share(t)
		const byReports = `{"policy": "weighted", "reports": {"weights": "reported", "out_of_band": "1s"}}`
		one, two := channels(t, byReports, "a", "b")
		before := two.policy.reports
		one.config = parse(t, `{}`)
		one.up(one.list...)
		two.up(two.list...)
		if one.policy.sharesWith(two.policy) || two.policy.reports == before || two.policy.reports == nil {
			t.Error("reports go to the pool of the others")
		}
	})
}

// What the last of them knew is remembered, for one that shares and for one that does not.
func TestWhatIsSharedOutlastsTheChannels(t *testing.T) {
	for _, on := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			rememberFor(t, time.Minute)
			share(t)
			one, two := channels(t, `{}`, "a", "b")
			late := two.latest().Picker
			open := one.pickedOn("a")
			one.policy.Close()
			two.policy.Close()
			Share(on)
			again := newRig(t, `{}`)
			again.up(each("a", "b", "c")...)
			if a := again.stats("a"); a.Picks != 1 || a.InFlight != 1 || again.policy.pool.Stats().Ready != 3 {
				t.Errorf("sharing %v: a is %+v", on, a)
			}
			if _, err := late.Pick(balancer.PickInfo{}); !errors.Is(err, balancer.ErrNoSubConnAvailable) {
				t.Errorf("a picker that is left over: %v", err)
			}
			open(succeeded)
			if len(again.shares(30)) == 0 || again.stats("a").InFlight != 0 {
				t.Error("it serves nobody, or counts wrongly")
			}
			again.policy.Close()
		})
	}
}

// Calls that are refused count once, whoever looks.
func TestRefusalsOfAllAreCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share(t)
		one, two := channels(t, `{"limit": {"per_endpoint": 1}}`, "a", "b")
		one.picked()
		two.picked()
		for _, r := range []*rig{one, two, one} {
			if _, err := r.pick(); err == nil {
				t.Fatal("a third of two")
			}
		}
		counted := uint64(0)
		for _, r := range []*rig{one, two, one} {
			s := r.policy.pool.Stats()
			counted += r.policy.refused.Load().news(s.Refused + s.Full)
		}
		if counted != 3 {
			t.Errorf("%d were counted, want 3", counted)
		}
		if n := one.policy.refused.Load().news(1); n != 0 {
			t.Errorf("a look that came late counted %d", n)
		}
	})
}

func TestPickOfAChannelThatSharesAllocatesOnce(t *testing.T) {
	if testcost.Race {
		t.Skip("the race detector makes sync.Pool forget at random")
	}
	synctest.Test(t, func(t *testing.T) {
		share(t)
		for _, config := range []string{"", `{"policy": "round_robin"}`, `{"policy": "maglev", "keys": [{"path": true}]}`} {
			one, two := channels(t, config, "a", "b", "c", "d")
			p := two.latest().Picker
			info := balancer.PickInfo{FullMethodName: "/s/m", Ctx: context.Background()}
			if n := testing.AllocsPerRun(1000, func() {
				result, err := p.Pick(info)
				if err != nil {
					t.Fatal(err)
				}
				result.Done(succeeded)
			}); n > 1 {
				t.Errorf("%s: %v allocations per pick and Done, want 1", config, n)
			}
			one.policy.Close()
			two.policy.Close()
		}
	})
}
