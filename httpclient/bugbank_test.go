package httpclient

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// Bug 49: a retry that waits in its back-off counts from its grant to its end.
func TestBug49RetriesThatWaitCountAgainstTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := &RetryConfig{Backoff: time.Second, Attempts: 2, Statuses: []int{503}, Budget: RetryBudget{Percent: 20, PerSecond: -1, AtOnce: -1}}
		a := act(t, 5, &Transport{Retry: retry}, func(_ int, _ string, req *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return answer(req, 503, ""), nil
		})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { _, _ = a.get(request(t, "GET", svc, nil)) })
		}
		wg.Wait()
		if n := a.tries(); n != 120 {
			t.Errorf("%d tries of 100 requests at once, want 120: a fifth of what is in flight and of the window", n)
		}
		if s := one(t, a.Transport); s.Retries != 20 || s.RefusedByBudget != 80 {
			t.Errorf("%d retries, %d refused", s.Retries, s.RefusedByBudget)
		}
		a.Close()
	})
}

// Bug 50: what retries have taken comes back, whatever became of them.
func TestBug50BudgetComesBackAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := true
		a := act(t, 3, &Transport{}, func(int, string, *http.Request) (*http.Response, error) {
			if bad {
				return nil, errBroken
			}
			return answer(nil, 200, ""), nil
		})
		for range 600 {
			if _, err := a.get(request(t, "GET", svc, nil)); !errors.Is(err, errBroken) {
				t.Fatal(err)
			}
		}
		bad = false
		for range 10000 {
			if _, err := a.get(request(t, "GET", svc, nil)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		a.tries()
		bad = true
		_, _ = a.get(request(t, "GET", svc, nil))
		if n := a.tries(); n != 3 {
			t.Errorf("%d tries of the last request, want 3", n)
		}
		if g := onlyGroup(a.Transport); g.budget.Open() != 0 || g.budget.InFlight() != 0 {
			t.Errorf("%d grants and %d requests are open", g.budget.Open(), g.budget.InFlight())
		}
		a.Close()
	})
}

// Bug 52: the second try goes to another endpoint whenever there is one.
func TestBug52SecondTryIsElsewhere(t *testing.T) {
	for _, endpoints := range []int{2, 3} {
		synctest.Test(t, func(t *testing.T) {
			a := act(t, endpoints, &Transport{}, func(_ int, addr string, req *http.Request) (*http.Response, error) {
				if addr == "10.0.0.1:80" {
					return nil, errBroken
				}
				return answer(req, 200, ""), nil
			})
			retries := 0
			for range 50 {
				if _, err := a.get(request(t, "GET", svc, nil)); err != nil {
					t.Fatal(err)
				}
				retries += a.tries() - 1
			}
			if retries == 0 {
				t.Error("nothing was retried")
			}
			a.Close()
		})
	}
	// By key, the policy would choose the same again and again.
	synctest.Test(t, func(t *testing.T) {
		first := ""
		a := act(t, 3, &Transport{}, func(_ int, addr string, req *http.Request) (*http.Response, error) {
			if first == "" {
				first = addr
			}
			if addr == first {
				return nil, errRefused
			}
			return answer(req, 200, ""), nil
		})
		a.Config.Policy, a.Config.Outlier = picker.Hash{}, &outlier.Config{Mode: outlier.NoEjection}
		start := time.Now()
		for range 20 {
			ctx := evenkeel.WithKey(t.Context(), "key")
			if _, err := a.get(request(t, "GET", svc, nil).WithContext(ctx)); err != nil || a.tries() != 2 || time.Since(start) != 0 {
				t.Fatalf("%v after %v", err, time.Since(start))
			}
		}
		a.Close()
	})
	// The last one that is left is tried again, after a moment.
	synctest.Test(t, func(t *testing.T) {
		a := act(t, 1, &Transport{}, func(nth int, _ string, req *http.Request) (*http.Response, error) {
			if nth == 1 {
				return nil, errRefused
			}
			return answer(req, 200, ""), nil
		})
		if _, err := a.get(request(t, "GET", svc, nil)); err != nil {
			t.Error(err)
		}
		a.Close()
	})
}

// Neither answers that are thrown away nor the requests of them stay in flight, and their connections can be used again.
func TestDiscardedAnswersAreReadToABound(t *testing.T) {
	s := serve(t, 2, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Attempt") != "" {
			return
		}
		w.Header().Set("Content-Length", "61440")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write(make([]byte, 60<<10))
	}, plain)
	tr := &Transport{Resolver: static(s), Retry: &RetryConfig{Statuses: []int{503}, Header: "X-Attempt", Backoff: time.Millisecond, Budget: RetryBudget{Disabled: true}}}
	c := client(t, tr)
	for range 20 {
		if resp, _ := fetch(t, c, svc); resp.StatusCode != 200 {
			t.Fatal(resp.Status)
		}
	}
	if conns := s[0].conns.Load() + s[1].conns.Load(); conns > 4 {
		t.Errorf("%d connections of 40 tries, one after the other", conns)
	}
	if n := inFlight(tr); n != 0 {
		t.Errorf("%d in flight", n)
	}
}
