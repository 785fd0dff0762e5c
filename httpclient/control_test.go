package httpclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
)

func ok(_ int, _ string, req *http.Request) (*http.Response, error) {
	return answer(req, 200, "x"), nil
}

func TestPinnedRequestsGoToTheirEndpointAlone(t *testing.T) {
	a := act(t, 5, &Transport{}, ok)
	for i := range 50 {
		addr := []string{"10.0.0.3", "10.0.0.5:80"}[i%2]
		if _, err := a.get(request(t, "GET", svc, nil).WithContext(WithEndpoint(t.Context(), addr))); err != nil {
			t.Fatal(err)
		}
		if got := a.sent[len(a.sent)-1]; !strings.HasPrefix(got, addr) {
			t.Fatalf("request %d went to %s, want %s", i, got, addr)
		}
	}
	if n := a.tries(); n != 50 || inFlight(a.Transport) != 0 {
		t.Errorf("%d tries of 50 requests, %d in flight", n, inFlight(a.Transport))
	}
	for _, addr := range []string{"10.0.0.9", "no:such:thing"} {
		_, err := a.get(request(t, "GET", svc, nil).WithContext(WithEndpoint(t.Context(), addr)))
		if err == nil || !strings.Contains(err.Error(), "pick endpoint "+addr) || addr == "10.0.0.9" && !errors.Is(err, ErrNoEndpoints) {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestPinnedRequestIsRetriedAtItsEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := act(t, 3, &Transport{}, func(int, string, *http.Request) (*http.Response, error) { return nil, errRefused })
		_, err := a.get(request(t, "GET", svc, nil).WithContext(WithEndpoint(t.Context(), "10.0.0.2")))
		if got := strings.Join(a.sent, " "); got != "10.0.0.2:80 10.0.0.2:80 10.0.0.2:80" || !errors.Is(err, ErrUnreached) {
			t.Errorf("sent to %s, %v", got, err)
		}
		a.Close()
	})
}

func TestAvoidedEndpointsGetRequestsOnlyIfThereIsNoOther(t *testing.T) {
	a := act(t, 3, &Transport{}, ok)
	ctx := WithAvoid(WithAvoid(t.Context(), "10.0.0.1:80", "nobody"), "10.0.0.2")
	for range 20 {
		_, _ = a.get(request(t, "GET", svc, nil).WithContext(ctx))
	}
	for _, got := range a.sent {
		if got != "10.0.0.3:80" {
			t.Fatalf("sent to %s", got)
		}
	}
	a.tries()
	ctx = WithAvoid(ctx, "10.0.0.3")
	if status, err := a.get(request(t, "GET", svc, nil).WithContext(ctx)); status != 200 {
		t.Errorf("all are avoided: %v", err)
	}
	if inFlight(a.Transport) != 0 {
		t.Errorf("%d in flight", inFlight(a.Transport))
	}
}

func TestWrongRetryConfigOfARequestIsRefused(t *testing.T) {
	a := act(t, 1, &Transport{}, ok)
	body := &closable{Reader: strings.NewReader("x")}
	_, err := a.get(request(t, "POST", svc, body).WithContext(WithRetry(t.Context(), RetryConfig{Attempts: 9, Statuses: []int{200}})))
	if err == nil || !strings.Contains(err.Error(), "RetryConfig.Attempts is 9, want 0 to 5") || !strings.Contains(err.Error(), "Statuses has 200") || body.closed.Load() == 0 {
		t.Errorf("%v", err)
	}
}

func TestWrongSettingsOfRetriesAndHedgesAreAllNamed(t *testing.T) {
	tr := &Transport{
		Retry: &RetryConfig{Attempts: 6, Statuses: []int{501}, TryTimeout: 1, Backoff: -1, MaxRetryAfter: time.Hour, Header: "a b",
			Budget: RetryBudget{Percent: 1e9, PerSecond: 1e9, AtOnce: 1 << 30, Window: 1}},
		Hedge: &HedgeConfig{Attempts: 1, Quantile: 2, MinDelay: -1, Delay: -1, MaxBody: -1},
	}
	defer tr.Close()
	_, err := tr.RoundTrip(request(t, "GET", svc, nil))
	for _, field := range []string{"Attempts is 6", "Statuses has 501", "TryTimeout", "Backoff", "MaxRetryAfter", `Header is "a b"`, "Budget.Percent",
		"Budget.PerSecond", "Budget.AtOnce", "Budget.Window", "HedgeConfig.Attempts", "Quantile", "MinDelay", "HedgeConfig.Delay", "MaxBody"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v\nwant %s in it", err, field)
		}
	}
}

func TestTraceAndObserverSeeEachTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &heard{}
		a := act(t, 3, &Transport{Observer: told, Retry: &RetryConfig{Statuses: []int{502}}}, func(nth int, _ string, req *http.Request) (*http.Response, error) {
			switch nth {
			case 1:
				return nil, errRefused
			case 2:
				time.Sleep(time.Second)
				return answer(req, 502, ""), nil
			}
			return answer(req, 200, "x"), nil
		})
		var got []string
		note := func(e Event) {
			got = append(got, e.Kind.String()+" "+e.Endpoint+" "+string(rune('0'+e.Attempt)))
		}
		trace := &Trace{GotEndpoint: note, AttemptDone: note, Retry: note}
		if status, err := a.get(request(t, "GET", svc, nil).WithContext(WithTrace(t.Context(), trace))); status != 200 {
			t.Fatal(err)
		}
		s := a.sent
		want := "got endpoint " + s[0] + " 1,attempt done " + s[0] + " 1,retried " + s[0] + " 1,got endpoint " + s[1] + " 2,attempt done " + s[1] +
			" 2,retried " + s[1] + " 2,got endpoint " + s[2] + " 3,attempt done " + s[2] + " 3"
		if strings.Join(got, ",") != want {
			t.Errorf("%s\nwant %s", strings.Join(got, ","), want)
		}
		if told.kinds() != "attempt done, retried, attempt done, retried, attempt done" {
			t.Error(told.kinds())
		}
		first, second := told.events[0], told.events[2]
		if first.Sent || first.Outcome != evenkeel.Unreached || first.Err == nil || first.Target.Host != "svc.test" {
			t.Errorf("%+v", first)
		}
		if !second.Sent || second.Status != 502 || second.Elapsed != time.Second || second.Outcome != evenkeel.Failure {
			t.Errorf("%+v", second)
		}
		a.Close()
	})
}

func TestClassifyHasTheLastWord(t *testing.T) {
	a := act(t, 1, &Transport{Retry: &RetryConfig{Disabled: true}, Classify: func(resp *http.Response, err error) evenkeel.Outcome {
		if err != nil || resp.Header.Get("X-Error") != "" {
			return evenkeel.Failure
		}
		return evenkeel.Success
	}}, func(nth int, _ string, req *http.Request) (*http.Response, error) {
		resp := answer(req, 500, "")
		if nth > 1 {
			resp.StatusCode = 200
			resp.Header.Set("X-Error", "1")
		}
		return resp, nil
	})
	a.Config.Policy = nil // the default, which learns
	_, _ = a.get(request(t, "GET", svc, nil))
	if e := one(t, a.Transport).Endpoints[0]; e.Success != 1 {
		t.Errorf("success is %v after what is none of the endpoint's failures", e.Success)
	}
	_, _ = a.get(request(t, "GET", svc, nil))
	if e := one(t, a.Transport).Endpoints[0]; e.Success == 1 {
		t.Error("success is 1 after a failure")
	}
}

func TestRetriesSayThatTheyAreRetriesAndAreNotRetriedThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var marks []string
		a := act(t, 3, &Transport{Retry: &RetryConfig{Header: "x-attempt"}}, func(_ int, _ string, req *http.Request) (*http.Response, error) {
			marks = append(marks, req.Header.Get("X-Attempt"))
			return nil, errRefused
		})
		req := request(t, "GET", svc, nil)
		if _, err := a.get(req); err == nil || strings.Join(marks, ",") != ",2,3" || len(req.Header) != 0 {
			t.Errorf("%q, %v, the caller's headers are %v", marks, err, req.Header)
		}
		marks = nil
		req.Header.Set("X-Attempt", "2")
		if _, err := a.get(req); err == nil || strings.Join(marks, ",") != "2" {
			t.Errorf("a retry of somebody else's was sent %d times", len(marks))
		}
		a.Close()
	})
}

func TestAttemptErrorNamesTargetEndpointAndAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := act(t, 2, &Transport{}, func(nth int, addr string, _ *http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "read", Err: errors.New("reset")}
		})
		_, err := a.get(request(t, "GET", svc, nil))
		var ae *AttemptError
		var op *net.OpError
		want := "httpclient: http://svc.test:80: endpoint " + a.sent[2] + ", attempt 3: read: reset (before that: endpoint " + a.sent[0] +
			", attempt 1: read: reset; endpoint " + a.sent[1] + ", attempt 2: read: reset)"
		if !errors.As(err, &ae) || !errors.As(err, &op) || err.Error() != want || !ae.Sent || ae.Attempt != 3 || ae.Outcome != evenkeel.Failure || errors.Is(err, ErrUnreached) {
			t.Errorf("%v, want %s", err, want)
		}
		a.Close()
	})
	for _, cause := range []error{evenkeel.ErrEmpty, evenkeel.ErrNoneReady, evenkeel.ErrPanic} {
		err := error(&TargetError{Err: cause})
		if !errors.Is(err, ErrNoEndpoints) || !errors.Is(err, cause) || !errors.Is(err, ErrUnreached) {
			t.Errorf("%v", err)
		}
	}
	if err := error(&TargetError{Err: evenkeel.ErrOverloaded}); errors.Is(err, ErrNoEndpoints) || !errors.Is(err, ErrOverloaded) {
		t.Errorf("%v", err)
	}
}

func TestHostsThatAreNotBalancedArePassedOn(t *testing.T) {
	s := serve(t, 1, hello, plain)
	tr := &Transport{Resolver: Static{{Addr: "127.0.0.1:1"}}, Balance: func(u *url.URL) bool { return u.Hostname() == "svc.test" }}
	c := client(t, tr)
	if resp, _ := fetch(t, c, s[0].URL); resp.StatusCode != 200 {
		t.Error(resp.Status)
	}
	if n := len(tr.Snapshot()); n != 0 {
		t.Errorf("%d targets", n)
	}
	if _, err := c.Do(request(t, "GET", svc, nil).WithContext(WithoutRetry(t.Context()))); !errors.Is(err, ErrUnreached) {
		t.Errorf("%v", err)
	}
	tr.Close()
	eventually(t, "its connections are closed", func() bool { return s[0].open.Load() == 0 })
	if _, err := c.Get(s[0].URL); !errors.Is(err, ErrClosed) {
		t.Errorf("%v after Close", err)
	}
	own := &Transport{Balance: func(*url.URL) bool { return false }, PassThrough: leafFunc(func(req *http.Request) (*http.Response, error) { return answer(req, 299, ""), nil })}
	if resp, _ := fetch(t, client(t, own), svc); resp.StatusCode != 299 {
		t.Error(resp.Status)
	}
}

func TestWaitReadyWaitsForAnEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &script{}
		tr := stubbed(t, &Transport{Resolver: r}, func(string, *http.Request) (*http.Response, error) { return nil, io.EOF })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := tr.WaitReady(ctx, svc)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "wait for the first list") {
			t.Errorf("%v", err)
		}
		r.sink().Error(errResolve)
		ctx, cancel2 := context.WithTimeout(t.Context(), time.Second)
		defer cancel2()
		if err := tr.WaitReady(ctx, svc); !errors.Is(err, errResolve) {
			t.Errorf("%v, want %v", err, errResolve)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := tr.WaitReady(t.Context(), svc); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Minute)
		_ = r.sink().Update(addrs("10.0.0.1"))
		wg.Wait()
		if err := tr.WaitReady(t.Context(), "ftp://svc.test"); err == nil {
			t.Error("no error for a target that cannot be")
		}
		tr.Close()
		if err := tr.WaitReady(t.Context(), svc); err != ErrClosed {
			t.Errorf("%v", err)
		}
	})
}

func TestShutdownWaitsForRequestsRetriesAndBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := act(t, 2, &Transport{Retry: &RetryConfig{Statuses: []int{503}}}, func(nth int, _ string, req *http.Request) (*http.Response, error) {
			if nth == 1 {
				resp := answer(req, 503, "")
				resp.Header.Set("Retry-After", "3")
				return resp, nil
			}
			resp := answer(req, 200, "x")
			resp.ContentLength = -1
			return resp, nil
		})
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			resp, err := a.RoundTrip(request(t, "GET", svc, nil))
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Second)
			resp.Body.Close()
		})
		time.Sleep(time.Second)
		wg.Go(func() {
			if err := a.Shutdown(t.Context()); err != nil || time.Since(start).Round(time.Second) != 4*time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
		synctest.Wait()
		if _, err := a.RoundTrip(request(t, "GET", svc, nil)); err != ErrClosed {
			t.Errorf("%v, want %v", err, ErrClosed)
		}
		wg.Wait()
		if err := a.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := act(t, 1, &Transport{}, func(_ int, _ string, req *http.Request) (*http.Response, error) {
			resp := answer(req, 200, "x")
			resp.ContentLength = -1
			return resp, nil
		})
		resp, err := a.RoundTrip(request(t, "GET", svc, nil))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.Shutdown(ctx); err != context.DeadlineExceeded {
			t.Errorf("%v", err)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != "x" || err != nil {
			t.Errorf("%q, %v: what is open goes on", body, err)
		}
		if err := (&Transport{}).Shutdown(t.Context()); err != nil {
			t.Errorf("%v of a Transport that was never used", err)
		}
	})
}
