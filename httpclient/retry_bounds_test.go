package httpclient

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httputil"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
)

// measured is a body that says what became of it; its Read is read, and hangs until Close if that is nil.
type measured struct {
	read   func([]byte) (int, error)
	bytes  int
	closed chan struct{}
	once   sync.Once
}

func (c *measured) Read(p []byte) (int, error) {
	if c.read == nil {
		<-c.closed
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := c.read(p)
	c.bytes += n
	return n, err
}

func (c *measured) Close() error { c.once.Do(func() { close(c.closed) }); return nil }

// What is thrown away costs at most 64 KiB and 50 ms, and is closed.
func TestDiscardedAnswersCostABoundedTimeAndSize(t *testing.T) {
	endless := func(p []byte) (int, error) { return len(p), nil }
	left := 1000
	short := func(p []byte) (int, error) {
		if left == 0 {
			return 0, io.EOF
		}
		n := min(len(p), left)
		left -= n
		return n, nil
	}
	for _, c := range []struct {
		name   string
		read   func([]byte) (int, error)
		length int64
		bytes  int
		took   time.Duration
	}{
		{"short", short, 1000, 1000, 0},
		{"endless", endless, -1, discardMost + 1, 0},
		{"said to be long", endless, discardMost + 1, 0, 0},
		{"said to be longer than can be", endless, math.MaxInt64, 0, 0},
		{"hanging", nil, -1, 0, discardTime},
	} {
		synctest.Test(t, func(t *testing.T) {
			body := &measured{read: c.read, closed: make(chan struct{})}
			start := time.Now()
			discard(&http.Response{Body: body, ContentLength: c.length})
			if d := time.Since(start); body.bytes != c.bytes || d != c.took {
				t.Errorf("%s: %d bytes in %v, want %d in %v", c.name, body.bytes, d, c.bytes, c.took)
			}
			select {
			case <-body.closed:
			default:
				t.Errorf("%s: it is open", c.name)
			}
		})
	}
	discard(nil)
	discard(&http.Response{})
}

// The time of a try is carved from that of the request, never added to it.
func TestTryTimeoutIsWithinTheDeadline(t *testing.T) {
	for _, c := range []struct {
		deadline, try time.Duration
		tries         int
	}{
		{300 * time.Millisecond, time.Second, 1},
		{250 * time.Millisecond, 100 * time.Millisecond, 3}, // with waits below 25 and 50 ms: the third has what is left
		{time.Second, 100 * time.Millisecond, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := act(t, 5, &Transport{Retry: &RetryConfig{TryTimeout: c.try, Backoff: time.Millisecond}},
				func(_ int, _ string, req *http.Request) (*http.Response, error) {
					<-req.Context().Done()
					return nil, context.Cause(req.Context())
				})
			ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
			defer cancel()
			start := time.Now()
			_, err := a.get(request(t, "GET", svc, nil).WithContext(ctx))
			var failed *AttemptError
			took, most := time.Since(start), min(c.deadline, time.Duration(c.tries)*c.try+3*time.Millisecond)
			if n := a.tries(); n != c.tries || took > most || !errors.As(err, &failed) || !failed.Timeout() || failed.Outcome != evenkeel.Timeout {
				t.Errorf("%+v: %d tries in %v: %v", c, n, took, err)
			}
			a.Close()
		})
	}
}

// An endpoint that dies takes all of its requests with it: the budget has room for those of a client with sixteen at once.
func TestRequestsThatBreakTogetherAreAllSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dies := make(chan struct{})
		a := act(t, 2, &Transport{}, func(_ int, addr string, req *http.Request) (*http.Response, error) {
			if addr == "10.0.0.1:80" {
				<-dies
				return nil, errBroken
			}
			time.Sleep(10 * time.Millisecond)
			return answer(req, 200, "x"), nil
		})
		var wg sync.WaitGroup
		for range 32 { // half of them there
			wg.Go(func() {
				if status, err := a.get(request(t, "GET", svc, nil)); status != 200 {
					t.Errorf("%d, %v", status, err)
				}
			})
		}
		time.Sleep(time.Millisecond)
		close(dies)
		wg.Wait()
		if s := one(t, a.Transport); s.Retries != 16 || s.RefusedByBudget != 0 {
			t.Errorf("%d retries, %d refused, want 16 and none", s.Retries, s.RefusedByBudget)
		}
		a.Close()
	})
}

// The winner of a hedge keeps its context until its body ends, and no longer; the loser loses it at once.
func TestContextOfAHedgesWinnerEndsWithItsBody(t *testing.T) {
	for _, end := range []func(io.ReadCloser){func(b io.ReadCloser) { b.Close() }, func(b io.ReadCloser) { _, _ = io.ReadAll(b) }} {
		synctest.Test(t, func(t *testing.T) {
			var loser, winner context.Context
			a := act(t, 2, &Transport{Hedge: &HedgeConfig{Delay: time.Millisecond}}, func(nth int, _ string, req *http.Request) (*http.Response, error) {
				if nth == 1 {
					loser = req.Context()
					<-loser.Done()
					return nil, context.Cause(loser)
				}
				winner = req.Context()
				resp := answer(req, 200, "x")
				resp.ContentLength = -1
				return resp, nil
			})
			resp, err := a.RoundTrip(request(t, "GET", svc, nil))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if winner.Err() != nil || context.Cause(loser) != errLost {
				t.Errorf("the winner's context is over: %v; the loser's cause is %v", winner.Err(), context.Cause(loser))
			}
			time.Sleep(time.Hour)
			if winner.Err() != nil {
				t.Errorf("%v while the body is open", winner.Err())
			}
			end(resp.Body)
			if winner.Err() == nil {
				t.Error("the winner's context is there after its body")
			}
			a.Close()
		})
	}
}

// A proxy over a Transport passes on what comes as it comes, and says 502 where there is nobody.
func TestReverseProxyStreamsAndTellsOfNobody(t *testing.T) {
	next := make(chan struct{})
	s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			_, _ = io.WriteString(w, "data: x\n\n")
			w.(http.Flusher).Flush()
			<-next
		}
	}, plain)
	tr := everythingOn(s)
	defer tr.Close()
	front := func(tr *Transport) string {
		proxy := &httputil.ReverseProxy{Transport: tr, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(parse(t, svc)) },
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}
		return serve(t, 1, proxy.ServeHTTP, plain)[0].URL
	}
	out := &http.Transport{}
	defer out.CloseIdleConnections()
	req := request(t, "GET", front(tr), nil)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := out.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var event [9]byte
		if _, err := io.ReadFull(resp.Body, event[:]); err != nil || string(event[:]) != "data: x\n\n" {
			t.Fatalf("%q, %v", event, err)
		}
		next <- struct{}{} // only now there is another
	}
	resp.Body.Close()
	nobody := &Transport{Resolver: &script{first: []Address{}}}
	defer nobody.Close()
	resp, err = out.RoundTrip(request(t, "POST", front(nobody), http.NoBody))
	if err != nil || resp.StatusCode != http.StatusBadGateway {
		t.Errorf("%v, %v, want 502", resp, err)
	}
	resp.Body.Close()
}
