package httpclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// cast is a Transport of stubs, and what they were sent.
type cast struct {
	*Transport
	mu   sync.Mutex
	sent []string // addresses, in order
	read []string // the bodies that came with them
}

// act returns a Transport over n endpoints that rotates over them; each request is answered by play, which is told its number.
func act(t testing.TB, n int, tr *Transport, play func(nth int, addr string, req *http.Request) (*http.Response, error)) *cast {
	c := &cast{Transport: tr}
	list := Static{}
	for i := range n {
		list = append(list, Address{Addr: "10.0.0." + string(rune('1'+i))})
	}
	tr.Resolver, tr.Config.Policy = list, picker.RoundRobin{}
	if tr.Config.Outlier == nil {
		tr.Config.Limit.Disabled = true
	}
	stubbed(t, tr, func(addr string, req *http.Request) (*http.Response, error) {
		body := ""
		if req.Body != nil {
			b, _ := io.ReadAll(req.Body)
			req.Body.Close()
			body = string(b)
		}
		c.mu.Lock()
		c.sent, c.read = append(c.sent, addr), append(c.read, body)
		nth := len(c.sent)
		c.mu.Unlock()
		return play(nth, addr, req)
	})
	return c
}

// tries returns how many tries there were since the last call.
func (c *cast) tries() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.sent)
	c.sent, c.read = nil, nil
	return n
}

// get sends a request and reads its answer.
func (c *cast) get(req *http.Request) (status int, err error) {
	resp, err := c.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	return resp.StatusCode, err
}

var (
	errRefused = &unreachedError{errors.New("connection refused")}
	errBroken  = io.ErrUnexpectedEOF
)

func TestWhatWasNotSentIsSentAgainAtOnceElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := act(t, 3, &Transport{}, func(_ int, addr string, req *http.Request) (*http.Response, error) {
			if addr == "10.0.0.2:80" {
				return nil, errRefused
			}
			return answer(req, 200, "served"), nil
		})
		start := time.Now()
		for i := range 300 {
			method := []string{"GET", "POST", "DELETE"}[i%3]
			req := request(t, method, svc, strings.NewReader("body"))
			if status, err := c.get(req); status != 200 {
				t.Fatalf("request %d: %v", i, err)
			}
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("%v were waited", d)
		}
		for i, body := range c.read {
			if body != "body" {
				t.Fatalf("try %d came with %q", i, body)
			}
		}
		if s := one(t, c.Transport); s.Retries == 0 || s.RefusedByBudget != 0 {
			t.Errorf("%d retries, %d refused", s.Retries, s.RefusedByBudget)
		}
		c.Close()
	})
}

// What may have been acted on is sent again only if that does no harm, and only with the whole of its body.
func TestOnlyIdempotentRequestsAreSentAgainAfterTheyWereSent(t *testing.T) {
	stream := func() io.Reader { return iotest.OneByteReader(strings.NewReader("body")) }
	yes, no := func(ctx context.Context) context.Context { return WithIdempotent(ctx, true) },
		func(ctx context.Context) context.Context { return WithIdempotent(ctx, false) }
	for _, c := range []struct {
		name   string
		method string
		header string
		body   io.Reader
		ctx    func(context.Context) context.Context
		err    error
		tries  int
	}{
		{"GET", "GET", "", nil, nil, errBroken, 3},
		{"HEAD", "HEAD", "", nil, nil, errBroken, 3},
		{"PUT", "PUT", "", strings.NewReader("body"), nil, errBroken, 3},
		{"DELETE", "DELETE", "", nil, nil, errBroken, 3},
		{"POST", "POST", "", strings.NewReader("body"), nil, errBroken, 1},
		{"PATCH", "PATCH", "", strings.NewReader("body"), nil, errBroken, 1},
		{"POST with a key", "POST", "Idempotency-Key", strings.NewReader("body"), nil, errBroken, 3},
		{"POST with an old key", "POST", "X-Idempotency-Key", strings.NewReader("body"), nil, errBroken, 3},
		{"POST that may be sent twice", "POST", "", strings.NewReader("body"), yes, errBroken, 3},
		{"GET that may not", "GET", "", nil, no, errBroken, 1},
		{"POST not sent", "POST", "", strings.NewReader("body"), nil, errRefused, 3},
		{"POST refused unread", "POST", "", strings.NewReader("body"), nil, refused{}, 3},
		{"POST beyond a GOAWAY", "POST", "", nil, nil, errors.New("http2: Transport received Server's graceful shutdown GOAWAY"), 3},
		{"upgrade", "GET", "Upgrade", nil, nil, errBroken, 1},
		{"upgrade not sent", "GET", "Upgrade", nil, nil, errRefused, 3},
		{"not retried", "GET", "", nil, WithoutRetry, errRefused, 1},
		{"retried more often", "GET", "", nil, func(ctx context.Context) context.Context { return WithRetry(ctx, RetryConfig{Attempts: 5}) }, errRefused, 5},
		{"wrong request", "GET", "", nil, nil, errors.New("net/http: invalid method"), 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := act(t, 5, &Transport{}, func(int, string, *http.Request) (*http.Response, error) { return nil, c.err })
			req := request(t, c.method, svc, c.body)
			if c.header != "" {
				req.Header.Set(c.header, "x")
			}
			if c.ctx != nil {
				req = req.WithContext(c.ctx(req.Context()))
			}
			_, err := a.get(req)
			seen := map[string]bool{}
			for i, addr := range a.sent {
				if seen[addr] = true; c.body != nil && a.read[i] != "body" {
					t.Errorf("%s: try %d came with %q", c.name, i+1, a.read[i])
				}
			}
			if !errors.Is(err, c.err) || len(a.sent) != c.tries || len(seen) != c.tries {
				t.Errorf("%s: %v after %v, want %d tries, each elsewhere", c.name, err, a.sent, c.tries)
			}
			a.Close()
		})
	}
	// Trap 17: a body that cannot be had anew is sent once, whatever happened.
	for _, err := range []error{errBroken, errRefused} {
		a := act(t, 3, &Transport{}, func(int, string, *http.Request) (*http.Response, error) { return nil, err })
		if _, got := a.get(request(t, "PUT", svc, stream())); !errors.Is(got, err) || len(a.sent) != 1 {
			t.Errorf("a body without GetBody: %v after %d tries", got, len(a.sent))
		}
	}
}

// refused is an HTTP/2 stream that was refused, as net/http lets others have it.
type refused struct{}

func (refused) Error() string { return "stream error: stream ID 1; REFUSED_STREAM" }

func (refused) As(target any) bool {
	s, ok := target.(*streamError)
	if ok {
		*s = streamError{StreamID: 1, Code: refusedStream}
	}
	return ok
}

func TestTrap17BodyIsNeverSentAgainInPart(t *testing.T) {
	var a *cast
	half := func(_ int, _ string, req *http.Request) (*http.Response, error) { return nil, errBroken }
	a = act(t, 3, &Transport{}, half)
	closes := &closable{Reader: strings.NewReader("half")}
	req := request(t, "PUT", svc, closes)
	if _, err := a.get(req); err == nil || a.tries() != 1 || closes.closed.Load() == 0 {
		t.Errorf("%v, closed %d times", err, closes.closed.Load())
	}
	disk := errors.New("disk")
	req = request(t, "PUT", svc, strings.NewReader("half"))
	req.GetBody = func() (io.ReadCloser, error) { return nil, disk }
	if _, err := a.get(req); err != disk || a.tries() != 1 {
		t.Errorf("%v, want what GetBody said", err)
	}
}

func TestStatusesAreRetriedWhereTheyAreNamedAndTheRequestIsIdempotent(t *testing.T) {
	for _, c := range []struct {
		method   string
		statuses []int
		tries    int
	}{
		{"GET", nil, 1}, {"GET", []int{503}, 1}, {"GET", []int{504, 502}, 3}, {"POST", []int{502}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := act(t, 3, &Transport{Retry: &RetryConfig{Statuses: c.statuses}}, func(_ int, _ string, req *http.Request) (*http.Response, error) {
				return answer(req, 502, "bad"), nil
			})
			req := request(t, c.method, svc, nil)
			resp, err := a.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if a.tries() != c.tries || resp.StatusCode != 502 || string(body) != "bad" || err != nil || resp.Request != req {
				t.Errorf("%v: %d %q %v, want the last answer", c, resp.StatusCode, body, err)
			}
			if n := inFlight(a.Transport); n != 0 {
				t.Errorf("%v: %d in flight", c, n)
			}
			a.Close()
		})
	}
}

// The last answer is the caller's, with its body, when there is no budget for another.
func TestLastAnswerIsReturnedWhenTheBudgetIsSpent(t *testing.T) {
	retry := &RetryConfig{Statuses: []int{503}, Budget: RetryBudget{Percent: -1, PerSecond: -1}}
	told := &heard{}
	a := act(t, 3, &Transport{Retry: retry, Observer: told}, func(_ int, _ string, req *http.Request) (*http.Response, error) {
		return answer(req, 503, "busy"), nil
	})
	resp, err := a.RoundTrip(request(t, "GET", svc, nil))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 503 || string(body) != "busy" || a.tries() != 1 || one(t, a.Transport).RefusedByBudget != 1 {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
	if got := told.kinds(); got != "attempt done, refused" {
		t.Errorf("told of %s", got)
	}
}

func TestTrap18RetryAfterIsHonouredWithinBounds(t *testing.T) {
	for _, c := range []struct {
		after    string
		deadline time.Duration
		tries    int
		waited   time.Duration
	}{
		{"2", 0, 2, 2 * time.Second},
		{"Sat, 01 Jan 2000 00:00:03 GMT", 0, 2, 3 * time.Second}, // when the bubble's clock begins
		{"5", 0, 2, 5 * time.Second},
		{"6", 0, 1, 0},
		{"999999999999", 0, 1, 0},
		{"99999999999999999999999999", 0, 1, 0},
		{"2", time.Second, 1, 0},
		{"2", 3 * time.Second, 2, 2 * time.Second},
		{"-5", 0, 2, -1}, {"soon", 0, 2, -1}, {"", 0, 2, -1}, // the back-off of its own
	} {
		synctest.Test(t, func(t *testing.T) {
			a := act(t, 2, &Transport{Retry: &RetryConfig{Statuses: []int{429}}}, func(nth int, _ string, req *http.Request) (*http.Response, error) {
				if nth > 1 {
					return answer(req, 200, ""), nil
				}
				resp := answer(req, 429, "later")
				resp.Header.Set("Retry-After", c.after)
				return resp, nil
			})
			ctx := t.Context()
			if c.deadline > 0 {
				d, cancel := context.WithTimeout(ctx, c.deadline)
				defer cancel()
				ctx = d
			}
			start := time.Now()
			status, err := a.get(request(t, "GET", svc, nil).WithContext(ctx))
			waited := time.Since(start)
			if tries := a.tries(); err != nil || tries != c.tries || (status == 200) != (tries == 2) ||
				c.waited >= 0 && waited != c.waited || c.waited < 0 && waited > defaultBackoff {
				t.Errorf("%q within %v: %d, %v after %d tries and %v", c.after, c.deadline, status, err, tries, waited)
			}
			a.Close()
		})
	}
}

func TestNoTryIsBegunThatCannotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := act(t, 3, &Transport{}, func(_ int, _ string, req *http.Request) (*http.Response, error) {
			time.Sleep(40 * time.Millisecond)
			if req.Header.Get("Fail") != "" {
				return nil, errRefused
			}
			return answer(req, 200, ""), nil
		})
		fail := func(within time.Duration) int {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			req := request(t, "GET", svc, nil).WithContext(ctx)
			req.Header.Set("Fail", "yes")
			if _, err := a.get(req); err == nil {
				t.Error("no error")
			}
			return a.tries()
		}
		// Where nothing is known a try takes 5 ms.
		if n := fail(42 * time.Millisecond); n != 1 {
			t.Errorf("%d tries with 2 ms left", n)
		}
		if n := fail(60 * time.Millisecond); n != 2 {
			t.Errorf("%d tries with 20 ms left", n)
		}
		for range 2 * paceEnough {
			_, _ = a.get(request(t, "GET", svc, nil))
		}
		time.Sleep(2 * time.Second) // a sweep
		a.tries()
		if n := fail(60 * time.Millisecond); n != 1 {
			t.Errorf("%d tries with 20 ms left, of answers that take 40 ms", n)
		}
		a.Close()
	})
}

func TestCallerThatLeavesDuringTheWaitGetsItsOwnReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := act(t, 2, &Transport{Retry: &RetryConfig{Statuses: []int{503}}}, func(_ int, _ string, req *http.Request) (*http.Response, error) {
			resp := answer(req, 503, "busy")
			resp.Header.Set("Retry-After", "3")
			return resp, nil
		})
		own := errors.New("my own cause")
		ctx, cancel := context.WithCancelCause(t.Context())
		start := time.Now()
		time.AfterFunc(time.Second, func() { cancel(own) })
		_, err := a.get(request(t, "GET", svc, nil).WithContext(ctx))
		g := onlyGroup(a.Transport)
		if err != own || a.tries() != 1 || time.Since(start) != time.Second || inFlight(a.Transport) != 0 || g.budget.Open() != 0 {
			t.Errorf("%v after %v, %d in flight, %d grants open", err, time.Since(start), inFlight(a.Transport), g.budget.Open())
		}
		if s := one(t, a.Transport); s.Retries != 0 || g.budget.Balance(g.at(g.now())) != 100 {
			t.Errorf("%d retries, %d left in the budget, want all 100", s.Retries, g.budget.Balance(g.at(g.now())))
		}
		a.Close()
	})
}
