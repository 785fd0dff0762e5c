package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/httpclient"
	"github.com/evenkeel/evenkeel/picker"
)

// base has what a Transport needs to speak HTTP/2 without TLS. gRPC's protocol needs HTTP/2; Connect's own does
// without.
func base() *http.Transport { return &http.Transport{Protocols: unencryptedHTTP2()} }

// byLoad is the default.
func byLoad(list httpclient.Static) *httpclient.Transport {
	return &httpclient.Transport{Resolver: list, Base: base()}
}

// userHeader is what byUser goes by.
const userHeader = "User"

// byUser sends all calls of a user to one backend, and to the same other one while that is away. Users stay
// however many there are at one: without Unbounded, each backend has at most a quarter more than its share.
func byUser(list httpclient.Static) *httpclient.Transport {
	return &httpclient.Transport{Resolver: list, Base: base(), Config: evenkeel.Config{
		Policy: picker.Hash{Unbounded: true},
		Keys:   []evenkeel.Key{{Header: userHeader}},
		Health: &evenkeel.HealthConfig{
			Protocol: evenkeel.CheckHTTP, Path: healthPath, UnexpectedAtOnce: true,
			UseUnchecked: true,                   // or users would be elsewhere until all backends have been asked
			Interval:     500 * time.Millisecond, // a service would leave this at five seconds
		},
	}}
}

// users of each client call, with a pause after each call.
const (
	users = 24
	pause = 20 * time.Millisecond
)

// timeout is that of a call: long, since nothing here is about those.
const timeout = 20 * time.Second

// client is a client of the service, and what became of its calls.
type client struct {
	name                string
	tr                  *httpclient.Transport
	greet, order, watch *connect.Client[text, text]
	cancel              context.CancelFunc
	all                 sync.WaitGroup

	mu     sync.Mutex
	calls  int
	by     map[string]int // calls, by the backend that answered
	home   [users]string  // the backend that answered a user first
	last   [users]string  // and last
	moved  [users]bool    // whether another one did in between
	failed int
	err    error  // the last of those
	again  uint64 // how often a call was sent once more
}

// newClient is all that it takes to balance. What has no side effects is sent by GET, which is sent again whatever
// happens to a connection; other calls are if nothing of them was sent, or it was refused unread.
func newClient(name string, tr *httpclient.Transport) *client {
	h := &http.Client{Transport: tr}
	return &client{
		name: name, tr: tr, by: map[string]int{}, cancel: func() {},
		greet: connect.NewClient[text, text](h, service+greetProcedure,
			connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects)),
		order: connect.NewClient[text, text](h, service+orderProcedure),
		watch: connect.NewClient[text, text](h, service+watchProcedure, connect.WithGRPC()), // or by gRPC's protocol
	}
}

// service stands for all backends.
const service = "http://greeter.example"

// begin has the users call until stop.
func (c *client) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	for user := range users {
		c.all.Go(func() {
			for ctx.Err() == nil {
				for _, do := range []func(context.Context, string) (string, error){c.unary(c.greet), c.unary(c.order), c.stream} {
					c.call(user, do)
					wait(ctx, pause)
				}
			}
		})
	}
}

// stop waits for the calls that are under way. It may be called again.
func (c *client) stop() {
	c.cancel()
	c.all.Wait()
	for _, target := range c.tr.Snapshot() { // none once it is closed
		c.again += target.Retries
	}
	c.tr.Close()
}

// call makes a call, and notes what becomes of it.
func (c *client) call(user int, do func(context.Context, string) (string, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	by, err := do(ctx, fmt.Sprint("user ", user))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls++; err != nil {
		c.failed, c.err = c.failed+1, err
		return
	}
	c.by[by]++
	if c.home[user] == "" {
		c.home[user] = by
	}
	c.last[user] = by
	if by != c.home[user] {
		c.moved[user] = true
	}
}

// unary makes one call, and returns who answered.
func (c *client) unary(of *connect.Client[text, text]) func(context.Context, string) (string, error) {
	return func(ctx context.Context, user string) (string, error) {
		resp, err := of.CallUnary(ctx, request(user))
		if err != nil {
			return "", err
		}
		return resp.Msg.Value, nil
	}
}

// stream reads a stream to its end. All of it has to be by one backend.
func (c *client) stream(ctx context.Context, user string) (by string, err error) {
	stream, err := c.watch.CallServerStream(ctx, request(user))
	if err != nil {
		return "", err
	}
	n := 0
	for stream.Receive() {
		if n++; by != "" && by != stream.Msg().Value {
			err = fmt.Errorf("%s goes on with a stream of %s", stream.Msg().Value, by)
		}
		by = stream.Msg().Value
	}
	if n != watched {
		err = errors.Join(err, fmt.Errorf("a stream has %d messages, want %d", n, watched))
	}
	return by, errors.Join(err, stream.Err(), stream.Close())
}

// request says whose it is.
func request(user string) *connect.Request[text] {
	r := connect.NewRequest(wrapperspb.String(user))
	r.Header().Set(userHeader, user)
	return r
}

// strangers is how many users were not answered last by the backend that they had first.
func (c *client) strangers() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for user := range users {
		if c.last[user] != c.home[user] {
			n++
		}
	}
	return n
}

// moves is how many users a backend had first, and how many of them another one answered as well.
func (c *client) moves(backend string) (of, moved int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for user := range users {
		if c.home[user] != backend {
			continue
		}
		if of++; c.moved[user] {
			moved++
		}
	}
	return of, moved
}
