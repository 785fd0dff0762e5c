//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/httpclient"
)

func newHTTP1(t *testing.T, c contender, fleet []*server) *client {
	t.Helper()
	return newHTTP(t, "http", &httpclient.Transport{Config: c.settings("http"), Retry: once}, c, fleet)
}

func newHTTP2(t *testing.T, c contender, fleet []*server) *client {
	t.Helper()
	base := &http.Transport{Protocols: new(http.Protocols)}
	base.Protocols.SetUnencryptedHTTP2(true)
	return newHTTP(t, "http2", &httpclient.Transport{Config: c.settings("http2"), Base: base, Retry: once}, c, fleet)
}

// once sends a request once, so that what one attempt meets shows.
var once = &httpclient.RetryConfig{Disabled: true}

// newHTTP returns a client over tr, which is closed with the test.
func newHTTP(t *testing.T, adapter string, tr *httpclient.Transport, c contender, fleet []*server) *client {
	t.Helper()
	names := &told{lists: make(chan []httpclient.Address, 1)}
	tr.Resolver = names
	t.Cleanup(tr.Close)
	user := &http.Client{Transport: tr}
	find := func(fleet []*server) {
		list := make([]httpclient.Address, len(fleet))
		for i, s := range fleet {
			list[i].Addr = s.http
		}
		names.lists <- list
	}
	find(fleet)
	call := func(ctx context.Context) (string, string) {
		ctx, addr := traced(ctx)
		failure := get(ctx, user, "http://chaos.invalid/")
		return addr(), failure
	}
	open := func(ctx context.Context, every time.Duration) (*stream, error) {
		ctx, addr := traced(ctx)
		resp, err := send(ctx, user, fmt.Sprint("http://chaos.invalid/stream?every=", every))
		if err != nil {
			return nil, err
		}
		piece := make([]byte, pieceSize)
		return &stream{addr: addr(), next: func() error {
			_, err := io.ReadFull(resp.Body, piece)
			if err != nil {
				_ = resp.Body.Close()
			}
			return err
		}}, nil
	}
	return &client{adapter: adapter, contender: c, call: call, open: open, find: find}
}

// traced makes a request tell where it goes.
func traced(ctx context.Context) (traced context.Context, addr func() string) {
	var where atomic.Pointer[string] // a dial may go on when the request is over
	traced = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		ConnectStart: func(_, to string) { where.Store(&to) },
		GotConn: func(info httptrace.GotConnInfo) {
			to := info.Conn.RemoteAddr().String()
			where.Store(&to)
		},
	})
	return traced, func() string {
		if to := where.Load(); to != nil {
			return *to
		}
		return ""
	}
}

// statusError is an answer with another status than 200.
type statusError int

// Error implements error.
func (e statusError) Error() string { return fmt.Sprint("status ", int(e)) }

// send sends a GET, whose answer's body is the caller's to close.
func send(ctx context.Context, user *http.Client, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := user.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		err = statusError(resp.StatusCode)
	}
	return resp, err
}

// get sends a GET and reads the answer.
func get(ctx context.Context, user *http.Client, url string) (failure string) {
	resp, err := send(ctx, user, url)
	if err != nil {
		return failureOf(err)
	}
	defer resp.Body.Close()
	if _, err = io.Copy(io.Discard, resp.Body); err != nil {
		return "body: " + failureOf(err)
	}
	return ""
}

// failureOf is an error in few words.
func failureOf(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return late
	case errors.Is(err, evenkeel.ErrOverloaded):
		return "over the limit"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "EOF"
	}
	return err.Error()
}

// late is the failure of a request whose deadline passed.
const late = "deadline"

// told is a resolver that says what it is told.
type told struct{ lists chan []httpclient.Address }

// Watch implements httpclient.Resolver.
func (r *told) Watch(ctx context.Context, _ httpclient.Target, sink httpclient.Sink) error {
	for {
		select {
		case list := <-r.lists:
			if err := sink.Update(list); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
