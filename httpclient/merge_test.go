package httpclient

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
)

// merged runs a Merge of n sources that say what the test tells them to.
func merged(t *testing.T, n int, f func(sources []*script, all *noted)) {
	synctest.Test(t, func(t *testing.T) {
		var m Merge
		var sources []*script
		for range n {
			s := &script{}
			sources = append(sources, s)
			m = append(m, s)
		}
		watching(t, m, "svc.test", func(all *noted) { f(sources, all) })
		for i, s := range sources {
			if s.watches.Load() != s.ended.Load() {
				t.Errorf("source %d still runs", i)
			}
		}
	})
}

func TestMergeIsTheUnionOfItsSources(t *testing.T) {
	merged(t, 2, func(s []*script, all *noted) {
		expect := func(want string) {
			t.Helper()
			if got, err := all.text(); got != want || err != nil {
				t.Errorf("%s, %v, want %s", got, err, want)
			}
		}
		update := func(i int, list ...Address) {
			t.Helper()
			if err := s[i].sink().Update(list); err != nil {
				t.Error(err)
			}
		}
		update(0, Address{Addr: "a:1"}, Address{Addr: "B:80", Weight: evenkeel.WeightOf(2)})
		expect("no list") // the other has said nothing yet
		update(1, Address{Addr: "b", Weight: evenkeel.WeightOf(5)}, Address{Addr: "c:1"})
		expect("B:80=2 a:1 c:1")
		update(0)
		expect("b=5 c:1")
		update(1)
		expect("")
		update(0, Address{Addr: "a:1"})
		expect("a:1")
		lists, _ := all.counts()
		update(0, Address{Addr: "a:1"}) // no news
		if now, _ := all.counts(); now != lists {
			t.Errorf("%d lists, want %d", now, lists)
		}
	})
}

func TestMergeKeepsWhatAFailingSourceHad(t *testing.T) {
	merged(t, 2, func(s []*script, all *noted) {
		a, b := s[0].sink(), s[1].sink()
		expect := func(what, want string, wrong ...error) {
			t.Helper()
			got, err := all.text()
			for _, w := range wrong {
				if !errors.Is(err, w) || !strings.Contains(err.Error(), "httpclient: Merge[0]: ") {
					t.Errorf("%s: %v, want %v", what, err, w)
				}
			}
			if got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		}
		_, _ = a.Update(addrs("a:1")), b.Update(addrs("b:1"))
		a.Error(errResolve)
		expect("an error", "a:1 b:1", errResolve)
		if err := a.Update(addrs("a:1", "bad:port")); err == nil {
			t.Error("a bad list is not refused")
		}
		if _, err := all.text(); !strings.Contains(err.Error(), "Merge[0]: httpclient: address 1: Addr is") {
			t.Errorf("%v", err)
		}
		_, errs := all.counts()
		if err := b.Update(addrs("b:2")); err != nil {
			t.Error(err)
		}
		expect("a change of the other", "a:1 b:2")
		if _, now := all.counts(); now != errs+1 {
			t.Error("the error is not told again after a list, which clears it")
		}
		lists, _ := all.counts()
		_ = a.Update(addrs("a:1")) // the same as before; but the error is over
		if now, _ := all.counts(); now != lists+1 {
			t.Error("the sink does not hear that the error is over")
		}
	})
}

// In a Transport, for what a sink does with errors.
func TestMergeServesFromOneSourceWhileAnotherFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{}
		z.set(errResolve)
		slow := &Poll{Func: func(ctx context.Context, _ Target) ([]Address, error) {
			time.Sleep(300 * time.Millisecond)
			return addrs("10.0.0.1"), nil
		}}
		tr := stubbed(t, &Transport{Resolver: Merge{&DNS{Lookup: z.lookup}, slow, Static(addrs("10.0.0.2"))}}, stubAnswer)
		roundTripAll(t, tr) // waits for the slow one, and does not fail for DNS
		if s := one(t, tr); len(s.Endpoints) != 2 || !errors.Is(s.ResolveError, errResolve) {
			t.Errorf("%v, %v", s.Endpoints, s.ResolveError)
		}
		z.set(nil, "10.0.0.3")
		time.Sleep(2 * time.Second)
		if s := one(t, tr); len(s.Endpoints) != 3 || s.ResolveError != nil {
			t.Errorf("%v, %v", s.Endpoints, s.ResolveError)
		}
		tr.Close()
	})
}

func TestMergeWaitsForSlowSourcesASecond(t *testing.T) {
	merged(t, 3, func(s []*script, all *noted) {
		_ = s[0].sink().Update(addrs("a:1"))
		s[1].sink().Error(errResolve)
		time.Sleep(990 * time.Millisecond)
		if lists, errs := all.counts(); lists+errs != 0 {
			t.Errorf("%d lists and %d errors before a second", lists, errs)
		}
		time.Sleep(20 * time.Millisecond)
		if got, err := all.text(); got != "a:1" || !errors.Is(err, errResolve) {
			t.Errorf("%s, %v after a second", got, err)
		}
	})
	merged(t, 2, func(s []*script, all *noted) { // nobody has a list
		s[0].sink().Error(errResolve)
		time.Sleep(1010 * time.Millisecond)
		if got, err := all.text(); got != "no list" || !errors.Is(err, errResolve) {
			t.Errorf("%s, %v after a second", got, err)
		}
		s[1].sink().Error(nil)
		if _, err := all.text(); !errors.Is(err, errResolve) || !strings.Contains(err.Error(), "Merge[1]: httpclient: the resolver reported an error without") {
			t.Errorf("%v", err)
		}
		_ = s[1].sink().Update(addrs("b:1"))
		if got, _ := all.text(); got != "b:1" {
			t.Errorf("%s", got)
		}
	})
}

// ending is a resolver whose Watch ends.
type ending struct {
	list []Address
	err  error
	runs int
}

func (e *ending) Watch(_ context.Context, _ Target, sink Sink) error {
	e.runs++
	if e.list != nil {
		_ = sink.Update(e.list)
	}
	return e.err
}

func TestMergeWatchesAgainWhoEndsWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done, broken := &ending{list: addrs("a:1")}, &ending{list: addrs("b:1"), err: errResolve}
		watching(t, Merge{done, broken}, "svc.test", func(all *noted) {
			if got, err := all.text(); got != "a:1 b:1" || !errors.Is(err, errResolve) {
				t.Errorf("%s, %v", got, err)
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if done.runs != 1 || broken.runs < 8 { // it works in between: no growing pauses
				t.Errorf("%d and %d runs", done.runs, broken.runs)
			}
		})
		all := &noted{hints: make(chan struct{}, 1)}
		err := Merge{done, &ending{}}.Watch(t.Context(), Target{Scheme: "http", Host: "svc.test", Port: "80"}, all)
		if got, wrong := all.text(); err != nil || got != "a:1" || !errors.Is(wrong, errNoList) {
			t.Errorf("%v, %s, %v, want an end without an error", err, got, wrong)
		}
	})
}

func TestMergePassesHintsToAllSources(t *testing.T) {
	merged(t, 3, func(s []*script, all *noted) {
		for range 3 {
			all.hints <- struct{}{}
			synctest.Wait()
		}
		for i := range s {
			select {
			case <-s[i].sink().Refresh():
			default:
				t.Errorf("source %d got no hint", i)
			}
		}
	})
}

func TestMergeOfNothingIsRefused(t *testing.T) {
	for _, c := range []struct {
		m    Merge
		want string
	}{
		{nil, "Merge has 0 resolvers, want at least 1"},
		{Merge{nil}, "Merge[0] is nil, want a Resolver"},
		{Merge{Static(addrs("a")), Merge{&DNS{Interval: 1}, Static{}}}, "Merge[1]: httpclient: Merge[0]: httpclient: DNS.Interval is 1ns"},
	} {
		if err := c.m.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// Whatever the sources do at once, the last word is the union of their last lists.
func TestMergeRacingSourcesEndInTheUnion(t *testing.T) {
	for seed := range uint64(20) {
		merged(t, 4, func(s []*script, all *noted) {
			var wg sync.WaitGroup
			var want []string
			for i := range s {
				rnd := rand.New(rand.NewPCG(seed, uint64(i)))
				last := fmt.Sprintf("h%d:%d", i, 1+rnd.IntN(100))
				want = append(want, last)
				wg.Go(func() {
					for range 50 {
						if rnd.IntN(4) == 0 {
							s[i].sink().Error(errResolve)
						} else {
							_ = s[i].sink().Update(addrs(fmt.Sprintf("h%d:%d", i, 1+rnd.IntN(100)), "same:1"))
						}
					}
					_ = s[i].sink().Update(addrs(last))
				})
			}
			wg.Wait()
			slices.Sort(want)
			if got, _ := all.text(); got != strings.Join(want, " ") {
				t.Errorf("seed %d: %s, want %v", seed, got, want)
			}
		})
	}
}
