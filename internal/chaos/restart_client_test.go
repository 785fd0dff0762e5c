//go:build unix

package chaos

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/httpclient"
)

// workers of a user send one request after the other, whatever becomes of it.
const workers = 16

// protocol is what a user of restarted servers speaks with them.
type protocol struct {
	name string
	tls  bool
	only func(*http.Protocols)
	// version is that of the answers.
	version int
}

// protocols are those of the restart table.
var protocols = []protocol{
	{name: "HTTP/1.1", only: func(p *http.Protocols) { p.SetHTTP1(true) }, version: 1},
	{name: "HTTP/2", only: func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }, version: 2},
	{name: "HTTP/2 TLS", only: func(p *http.Protocols) { p.SetHTTP2(true) }, version: 2, tls: true},
}

// base is a template for transports that speak it alone.
func (p protocol) base() *http.Transport {
	base := &http.Transport{Protocols: new(http.Protocols)}
	p.only(base.Protocols)
	if p.tls {
		s := httptest.NewTLSServer(nil)
		defer s.Close()
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		base.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	return base
}

// url is what is asked for.
func (p protocol) url() string {
	if p.tls {
		return "https://" + tlsHost + "/"
	}
	return "http://chaos.invalid/"
}

// user sends requests of one method to servers that are restarted.
type user struct {
	protocol
	method string
	// every is how long a worker waits between two requests; 0 is not at all.
	every time.Duration
	names *told
	tr    *httpclient.Transport
	http  *http.Client

	stop context.CancelFunc
	all  sync.WaitGroup
	sent atomic.Int64

	mu     sync.Mutex
	by     map[string]int // answers, by the process that gave them
	lost   []error
	unsent int // of those, that no server can have acted on, so that they need not be lost
}

// newUser returns one that is stopped with the test.
func newUser(t *testing.T, p protocol, method string, every time.Duration, config evenkeel.Config, retry *httpclient.RetryConfig) *user {
	t.Helper()
	u := &user{protocol: p, method: method, every: every, by: map[string]int{}, stop: func() {}}
	u.names = &told{lists: make(chan []httpclient.Address, 1)}
	u.tr = &httpclient.Transport{Resolver: u.names, Config: config, Base: p.base(), Retry: retry}
	u.http = &http.Client{Transport: u.tr, Timeout: patience}
	t.Cleanup(func() {
		u.halt()
		u.tr.Close()
	})
	return u
}

// begin starts the workers, one after the other: what a server that has just begun takes for the first of many at
// once would count for long against it.
func (u *user) begin() {
	ctx, stop := context.WithCancel(context.Background())
	u.stop = stop
	for i := range workers {
		u.all.Go(func() {
			_ = pass(ctx, time.Duration(i)*5*time.Millisecond)
			for ctx.Err() == nil {
				u.request()
				if u.every > 0 {
					_ = pass(ctx, u.every)
				}
			}
		})
	}
}

// halt waits for the workers' last requests. It may be called again.
func (u *user) halt() {
	u.stop()
	u.all.Wait()
}

func (u *user) request() {
	body := ""
	if number := u.sent.Add(1); u.method == http.MethodPost {
		body = fmt.Sprint(number)
	}
	by, err := u.send(body)
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil {
		u.lost = append(u.lost, err)
		if !actedOn(err) {
			u.unsent++
		}
		return
	}
	u.by[by]++
}

// send sends one request, and says who answered.
func (u *user) send(body string) (by string, err error) {
	req, err := http.NewRequest(u.method, u.url(), strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := u.http.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	switch body, err := io.ReadAll(resp.Body); {
	case err != nil:
		return "", brokenOff{err}
	case resp.StatusCode != http.StatusOK || resp.ProtoMajor != u.version || string(body) != answer && string(body) != "":
		return "", fmt.Errorf("%s %s %q", resp.Proto, resp.Status, body)
	}
	return resp.Header.Get(servedBy), nil
}

// brokenOff is the error of an answer that did not come to its end.
type brokenOff struct{ error }

// actedOn reports whether a server may have acted on a request that failed.
func actedOn(err error) bool {
	var attempt *httpclient.AttemptError
	var body brokenOff
	return errors.As(err, &body) || errors.As(err, &attempt) && attempt.Sent
}

// served is how many answers a process gave.
func (u *user) served(process string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.by[process]
}

// find replaces the list of servers.
func (u *user) find(fleet []*server) {
	list := make([]httpclient.Address, len(fleet))
	for i, s := range fleet {
		list[i].Addr = s.http
	}
	u.names.lists <- list
}

// uses reports whether a server may get the user's requests.
func (u *user) uses(s *server) bool {
	for _, target := range u.tr.Snapshot() {
		for _, e := range target.Endpoints {
			if e.ID == s.http && e.Available {
				return true
			}
		}
	}
	return false
}

// well is how many servers pass the user's checks.
func (u *user) well() (n int) {
	for _, target := range u.tr.Snapshot() {
		for _, said := range target.Checks {
			if said == "HTTP 200" {
				n++
			}
		}
	}
	return n
}
