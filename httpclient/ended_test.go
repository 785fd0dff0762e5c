package httpclient

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
)

func TestRequestsThatEndedBeforeThePickBlameNobody(t *testing.T) {
	own := errors.New("my own cause")
	expired, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	canceled, cancelCause := context.WithCancelCause(t.Context())
	cancelCause(own)
	legacy := make(chan struct{})
	close(legacy)
	for _, c := range []struct {
		name   string
		ctx    context.Context
		legacy <-chan struct{}
		want   error
	}{
		{"deadline", expired, nil, context.DeadlineExceeded},
		{"cancelled with a cause", canceled, nil, own},
		{"cancelled as before contexts", t.Context(), legacy, context.Canceled},
	} {
		sent := 0
		tr := single(t, func(req *http.Request) (*http.Response, error) { sent++; return answer(req, 204, ""), nil })
		roundTripAll(t, tr)
		before := endpointStats(t, one(t, tr), "10.0.0.1:80")
		for range 50 {
			body := &closable{Reader: strings.NewReader("x")}
			req := request(t, "POST", svc, body).WithContext(c.ctx)
			//lint:ignore SA1019 net/http honours it, so callers may use it
			req.Cancel = c.legacy
			if _, err := tr.RoundTrip(req); err != c.want || body.closed.Load() == 0 {
				t.Fatalf("%s: %v, want %v; the body was closed %d times", c.name, err, c.want, body.closed.Load())
			}
		}
		after := endpointStats(t, one(t, tr), "10.0.0.1:80")
		if sent != 1 || after.Picks != before.Picks || after.Success != 1 || after.InFlight != 0 {
			t.Errorf("%s: %d sent, %d picks, success %v, in flight %d, want 1, %d, 1, 0",
				c.name, sent, after.Picks, after.Success, after.InFlight, before.Picks)
		}
	}
}

func TestRequestThatEndsDuringThePickBlamesNobody(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	own := errors.New("my own cause")
	armed, sent := false, 0
	tr := stubbed(t, &Transport{Resolver: Static{{Addr: "10.0.0.1"}, {Addr: "10.0.0.2"}, {Addr: "10.0.0.3"}}, rand: func() uint64 {
		if armed {
			cancel(own)
		}
		return 1
	}}, func(_ string, req *http.Request) (*http.Response, error) { sent++; return answer(req, 204, ""), nil })
	roundTripAll(t, tr)
	armed = true
	body := &closable{Reader: strings.NewReader("x")}
	_, err := tr.RoundTrip(request(t, "POST", svc, body).WithContext(ctx))
	if err != own || sent != 1 || body.closed.Load() == 0 {
		t.Errorf("%v, want %v; %d sent, want 1; the body was closed %d times", err, own, sent, body.closed.Load())
	}
	for _, e := range one(t, tr).Endpoints {
		if e.Success != 1 || e.InFlight != 0 {
			t.Errorf("%s: success %v, in flight %d, want 1, 0", e.ID, e.Success, e.InFlight)
		}
	}
}

// closedResolver fails with an error that is the pool's too.
type closedResolver struct{}

func (closedResolver) Watch(ctx context.Context, _ Target, sink Sink) error {
	sink.Error(evenkeel.ErrClosed)
	<-ctx.Done()
	return ctx.Err()
}

func TestErrClosedOfOthersEndsTheRequest(t *testing.T) {
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(evenkeel.ErrClosed)
	for name, c := range map[string]struct {
		resolver Resolver
		ctx      context.Context
	}{
		"the resolver's":                     {closedResolver{}, t.Context()},
		"the caller's, before a first list":  {&script{}, canceled},
		"the caller's, with a list of hosts": {Static{{Addr: "10.0.0.1"}}, canceled},
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := stubbed(t, &Transport{Resolver: c.resolver}, stubAnswer)
			var err error
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, err = tr.RoundTrip((&http.Request{Method: "GET", URL: parse(t, svc), Header: http.Header{}}).WithContext(c.ctx))
			}()
			<-ended
			if !errors.Is(err, evenkeel.ErrClosed) || err == errEvicted {
				t.Errorf("%s: %v, want %v", name, err, evenkeel.ErrClosed)
			}
			tr.Close()
		})
	}
}
