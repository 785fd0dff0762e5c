package httpclient

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
)

func TestPollAsksItsFunctionAgainAndKeepsTheLastList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var list atomic.Pointer[[]Address]
		var wrong atomic.Pointer[error]
		set := func(err error, l ...string) { as := addrs(l...); list.Store(&as); wrong.Store(&err) }
		set(nil, "10.0.0.1", "10.0.0.2")
		tr := stubbed(t, &Transport{Resolver: &Poll{Every: time.Second, Func: func(_ context.Context, target Target) ([]Address, error) {
			if target.String() != "http://svc.test:80" {
				t.Errorf("asked for %v", target)
			}
			return *list.Load(), *wrong.Load()
		}}}, stubAnswer)
		roundTripAll(t, tr)
		check := func(what string, endpoints int, wrong error) {
			t.Helper()
			if s := one(t, tr); len(s.Endpoints) != endpoints || !errors.Is(s.ResolveError, wrong) {
				t.Errorf("%s: %d endpoints, %v, want %d, %v", what, len(s.Endpoints), s.ResolveError, endpoints, wrong)
			}
		}
		set(nil, "10.0.0.1", "10.0.0.2", "10.0.0.3")
		time.Sleep(1200 * time.Millisecond)
		check("another list", 3, nil)
		list.Store(new([]Address)) // a list of nil
		wrong.Store(&errResolve)
		time.Sleep(1200 * time.Millisecond)
		check("an error", 3, errResolve)
		set(errResolve, "10.0.0.1")
		time.Sleep(time.Minute)
		check("a part, and an error", 1, errResolve)
		set(nil)
		time.Sleep(40 * time.Second)
		check("nobody", 0, nil)
		if _, err := tr.RoundTrip(request(t, "GET", svc, nil)); !errors.Is(err, evenkeel.ErrEmpty) {
			t.Errorf("%v, want %v", err, evenkeel.ErrEmpty)
		}
		tr.Close()
	})
}

func TestPollComesEarlierForHintsAndBoundsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []time.Duration
		start := time.Now()
		hang := atomic.Bool{}
		p := &Poll{Every: time.Hour, Func: func(ctx context.Context, _ Target) ([]Address, error) {
			calls = append(calls, time.Since(start))
			if hang.Load() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return addrs("10.0.0.1"), nil
		}}
		watching(t, p, "svc.test", func(n *noted) {
			n.hints <- struct{}{}
			time.Sleep(time.Minute)
			n.hints <- struct{}{}
			synctest.Wait()
			hang.Store(true)
			time.Sleep(time.Minute)
			n.hints <- struct{}{}
			time.Sleep(lookTimeout)
			synctest.Wait()
			if want := []time.Duration{0, lookLeast, time.Minute, 2 * time.Minute}; !slices.Equal(calls, want) {
				t.Errorf("calls at %v, want %v", calls, want)
			}
			if _, err := n.text(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want that the call took too long", err)
			}
		})
	})
}

// An own list that is refused is asked for again, in growing pauses.
func TestPollBacksOffWhenItsListIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		tr := stubbed(t, &Transport{Resolver: &Poll{Every: time.Second, Func: func(context.Context, Target) ([]Address, error) {
			calls.Add(1)
			return addrs("10.0.0.1", "10.0.0.1"), nil
		}}}, stubAnswer)
		if _, err := tr.RoundTrip(request(t, "GET", svc, nil)); err == nil || !strings.Contains(err.Error(), "the same as address 0") {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Minute)
		if n := calls.Load(); n < 5 || n > 7 {
			t.Errorf("%d calls in a minute, want 6: after 1, 2, 4, 8, 16 s", n)
		}
		tr.Close()
	})
}

func TestPollSettingsOutOfRangeAreRefused(t *testing.T) {
	err := (&Poll{Every: 1}).Validate()
	if err == nil || !strings.Contains(err.Error(), "Poll.Func is nil, want a function") || !strings.Contains(err.Error(), "Poll.Every is 1ns, want 0 or at least 1s") {
		t.Error(err)
	}
	if err := (*Poll)(nil).Validate(); err == nil {
		t.Error("nil is no Poll")
	}
}

func TestListBeyondItsBoundIsRefused(t *testing.T) {
	_, err := locate(make([]Address, maxAddresses+1), 80)
	if err == nil || err.Error() != "httpclient: the list has 131073 addresses, want at most 131072" {
		t.Error(err)
	}
}
