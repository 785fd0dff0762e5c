package httpclient

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestTargetsAreBoundedAndIdleOnesMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &script{first: addrs("10.0.0.1")}
		tr := stubbed(t, &Transport{Resolver: r, MaxTargets: 3}, func(_ string, req *http.Request) (*http.Response, error) {
			resp := answer(req, 200, "x")
			return resp, nil
		})
		get := func(host string) (*http.Response, error) {
			return tr.RoundTrip(request(t, "GET", "http://"+host+"/", nil))
		}
		for i := range 1000 {
			resp, err := get(fmt.Sprintf("h%d.test", i))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		synctest.Wait()
		if n, running := len(tr.Snapshot()), r.watches.Load()-r.ended.Load(); n != 3 || running != 3 {
			t.Errorf("%d targets and %d watches, want 3", n, running)
		}
		// One that is in use longest ago stays while its request is in flight.
		busy := make([]*http.Response, 3)
		for i := range busy {
			time.Sleep(2 * time.Second)
			resp, err := get(fmt.Sprintf("busy%d.test", i))
			if err != nil {
				t.Fatal(err)
			}
			busy[i] = resp
		}
		if _, err := get("more.test"); !errors.Is(err, ErrTooManyTargets) || !strings.Contains(err.Error(), "more.test") {
			t.Errorf("%v, want %v", err, ErrTooManyTargets)
		}
		busy[1].Body.Close()
		resp, err := get("more.test")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		var hosts []string
		for _, s := range tr.Snapshot() {
			hosts = append(hosts, s.Target.Host)
		}
		if !slices.Equal(hosts, []string{"busy0.test", "busy2.test", "more.test"}) {
			t.Errorf("targets are %v", hosts)
		}
		busy[0].Body.Close()
		busy[2].Body.Close()
		tr.Close()
	})
}

func TestTargetThatIsWaitedForIsNotEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &script{}
		tr := stubbed(t, &Transport{Resolver: r, MaxTargets: 1}, stubAnswer)
		var wg sync.WaitGroup
		wg.Go(func() { roundTripAll(t, tr) })
		synctest.Wait()
		if _, err := tr.RoundTrip(request(t, "GET", "http://other.test/", nil)); !errors.Is(err, ErrTooManyTargets) {
			t.Errorf("%v, want %v", err, ErrTooManyTargets)
		}
		if err := r.sink().Update(addrs("10.0.0.1")); err != nil {
			t.Error(err)
		}
		wg.Wait()
		tr.Close()
	})
}

func TestTargetWithoutRequestsIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &script{first: addrs("10.0.0.1")}
		tr := stubbed(t, &Transport{Resolver: r, TargetIdleTimeout: time.Minute}, func(_ string, req *http.Request) (*http.Response, error) {
			return answer(req, 200, "x"), nil
		})
		open, err := tr.RoundTrip(request(t, "GET", "http://open.test/", nil))
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			roundTripAll(t, tr)
			time.Sleep(50 * time.Second)
		}
		if n := len(tr.Snapshot()); n != 2 {
			t.Errorf("%d targets, want the one with requests and the one with an open body", n)
		}
		time.Sleep(15 * time.Second)
		if s := one(t, tr); s.Target.Host != "open.test" {
			t.Errorf("%v is left, want the one with an open body", s.Target)
		}
		open.Body.Close()
		time.Sleep(2 * time.Second)
		if n := len(tr.Snapshot()); n != 0 || r.ended.Load() != 2 {
			t.Errorf("%d targets are left, %d of 2 watches ended", n, r.ended.Load())
		}
		roundTripAll(t, tr) // it is back when it is needed
		tr.Close()
	})
}

// usualHost is the host of the target that is found without a look at the map, "" for none.
func usualHost(tr *Transport) string {
	if l := tr.running().usual.Load(); l != nil {
		return l.host
	}
	return ""
}

func TestUsualTargetIsFoundAgainWhateverComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &script{first: addrs("10.0.0.1")}
		tr := stubbed(t, &Transport{Resolver: r, MaxTargets: 2}, stubAnswer)
		start := time.Now()
		roundTripTo(t, tr, "a.test") // starts the sweeps
		for i, s := range []struct {
			ask    string
			second int // each has a sweep before it
			want   string
		}{
			{"a.test", 0, "a.test"},
			{"b.test", 0, "a.test"},
			{"b.test", 1, "b.test"}, // a may be asked for no longer
			{"a.test", 1, "b.test"},
			{"a.test", 2, "a.test"},
			{"c.test", 2, "a.test"}, // for which b makes room
		} {
			// Not at the instant of a sweep.
			time.Sleep(time.Until(start.Add(time.Duration(s.second)*sweepEvery + sweepEvery/2)))
			roundTripTo(t, tr, s.ask)
			if got := usualHost(tr); got != s.want {
				t.Errorf("step %d, %s: the usual target is %q, want %q", i, s.ask, got, s.want)
			}
		}
		// The usual one goes, since all others are busy.
		open, err := tr.RoundTrip(request(t, "GET", "http://c.test/", nil))
		if err != nil {
			t.Fatal(err)
		}
		roundTripTo(t, tr, "d.test")
		if got := usualHost(tr); got != "d.test" {
			t.Errorf("the usual target is %q, want d.test", got)
		}
		open.Body.Close()
		tr.Close()
	})
}

func roundTripTo(t *testing.T, tr *Transport, host string) {
	t.Helper()
	roundTrip(t, tr, request(t, "GET", "http://"+host+"/", nil))
}

// A target that was closed must not be found by the short way, or its requests would go
// round for ever.
func TestUsualTargetIsNeverAClosedOne(t *testing.T) {
	tr := stubbed(t, &Transport{Resolver: &script{first: addrs("10.0.0.1")}, MaxTargets: 1}, stubAnswer)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 300 {
				resp, err := tr.RoundTrip(request(t, "GET", fmt.Sprintf("http://h%d.test/", i), nil))
				if err == nil {
					resp.Body.Close()
				} else if !errors.Is(err, ErrTooManyTargets) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	f := tr.running()
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.usual.Load(); l != nil && (*f.groups.Load())[l.group.target] != l.group {
		t.Errorf("the usual target is %v, which is closed", l.group.target)
	}
}
