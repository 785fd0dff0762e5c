package httpclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
)

func TestTryTimeoutEndsATryAndNotTheRequest(t *testing.T) {
	for _, c := range []struct {
		method string
		tries  int
		after  time.Duration
	}{{"GET", 2, time.Second}, {"POST", 1, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			a := act(t, 2, &Transport{Retry: &RetryConfig{TryTimeout: time.Second}}, func(nth int, _ string, req *http.Request) (*http.Response, error) {
				if nth == 1 {
					connectedNow(req)
					<-req.Context().Done()
					return nil, context.Cause(req.Context())
				}
				resp := answer(req, 200, "")
				resp.ContentLength, resp.Body = -1, &slowBody{ctx: req.Context()}
				return resp, nil
			})
			start := time.Now()
			status, err := a.get(request(t, c.method, svc, nil))
			if n := a.tries(); n != c.tries || (err == nil) != (c.tries > 1) {
				t.Errorf("%s: %d, %v after %d tries and %v", c.method, status, err, n, time.Since(start))
			}
			var ne net.Error
			var ae *AttemptError
			if err != nil && (!errors.As(err, &ne) || !ne.Timeout() || !errors.As(err, &ae) || !ae.Sent || ae.Outcome != evenkeel.Timeout) {
				t.Errorf("%v, want a timeout", err)
			}
			if n := inFlight(a.Transport); n != 0 {
				t.Errorf("%d in flight", n)
			}
			a.Close()
		})
	}
}

// A try that has no connection in time was not sent, so that a POST is sent again too.
func TestTryTimeoutBeforeTheConnectionIsNothingSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := act(t, 2, &Transport{Retry: &RetryConfig{TryTimeout: time.Second}}, func(nth int, _ string, req *http.Request) (*http.Response, error) {
			if nth == 1 {
				<-req.Context().Done()
				return nil, context.Cause(req.Context())
			}
			return answer(req, 200, ""), nil
		})
		if status, err := a.get(request(t, "POST", svc, strings.NewReader("x"))); status != 200 {
			t.Errorf("%d, %v", status, err)
		}
		a.Close()
	})
}

// slowBody takes longer than any try may, and breaks off when its context ends.
type slowBody struct {
	ctx  context.Context
	read bool
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.read {
		return 0, io.EOF
	}
	b.read = true
	time.Sleep(time.Minute)
	if b.ctx.Err() != nil {
		return 0, b.ctx.Err()
	}
	p[0] = 'x'
	return 1, nil
}

func (*slowBody) Close() error { return nil }

// What a try has of its own ends with it, whatever its end is, and not before.
func TestContextOfATryEndsWithItsAnswer(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int // 0: an error
		end    func(io.ReadCloser)
	}{
		{"error", 0, nil},
		{"no body", 204, nil},
		{"end of body", 200, func(b io.ReadCloser) { _, _ = io.ReadAll(b) }},
		{"closed body", 200, func(b io.ReadCloser) { b.Close() }},
	} {
		var ctx context.Context
		a := act(t, 1, &Transport{Retry: &RetryConfig{TryTimeout: time.Hour, Attempts: 1}}, func(_ int, _ string, req *http.Request) (*http.Response, error) {
			if ctx = req.Context(); c.status == 0 {
				return nil, errBroken
			}
			resp := answer(req, c.status, "x")
			resp.ContentLength = -1
			return resp, nil
		})
		resp, err := a.RoundTrip(request(t, "GET", svc, nil))
		if err == nil && c.end != nil {
			if ctx.Err() != nil {
				t.Errorf("%s: over with the headers", c.name)
			}
			c.end(resp.Body)
		}
		if ctx.Err() == nil || (err == nil) != (c.status > 0) {
			t.Errorf("%s: the context is still there; %v", c.name, err)
		}
	}
}

// An upload goes on after an early answer without a body, and the try's context with it.
func TestContextOfATryOutlivesAnEarlyAnswerUntilTheUploadEnds(t *testing.T) {
	var ctx context.Context
	var upload io.ReadCloser
	tr := single(t, func(req *http.Request) (*http.Response, error) {
		ctx, upload = req.Context(), req.Body
		return answer(req, 204, ""), nil
	})
	tr.Retry = &RetryConfig{TryTimeout: time.Hour}
	if _, err := tr.RoundTrip(request(t, "POST", svc, io.MultiReader(strings.NewReader("x")))); err != nil || ctx.Err() != nil {
		t.Fatalf("%v, %v", err, ctx.Err())
	}
	if upload.Close(); ctx.Err() == nil {
		t.Error("the context is there after the upload's end")
	}
}
