package httpclient

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// clearText has HTTP/1.1 alone, or HTTP/2 without TLS alone.
func clearText(h2 bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(!h2)
	p.SetUnencryptedHTTP2(h2)
	return p
}

// backend is a server that can be restarted at its address.
type backend struct {
	addr     string
	handler  http.Handler
	protocol *http.Protocols
	server   *http.Server
	done     chan struct{}
}

func (b *backend) start(t testing.TB) {
	t.Helper()
	ln, err := net.Listen("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	b.addr = ln.Addr().String()
	b.server = &http.Server{Handler: b.handler, Protocols: b.protocol, ErrorLog: log.New(io.Discard, "", 0)}
	b.done = make(chan struct{})
	go func(s *http.Server, done chan struct{}) {
		defer close(done)
		_ = s.Serve(ln) // ErrServerClosed
	}(b.server, b.done)
}

// stop shuts the server down as one that is deployed anew does.
func (b *backend) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = b.server.Shutdown(ctx)
	_ = b.server.Close()
	<-b.done
}

// received counts by the client's number of the request how often servers had it.
type received struct{ n sync.Map }

func (r *received) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	if req.Method == http.MethodPost && string(body) == "" {
		return // it broke off, and is not acted on
	}
	n, _ := r.n.LoadOrStore(req.Header.Get("X-Number"), new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
	_, _ = io.WriteString(w, "served")
}

// twice returns how many requests servers had more than once.
func (r *received) twice() (n int) {
	r.n.Range(func(_, v any) bool {
		if v.(*atomic.Int64).Load() > 1 {
			n++
		}
		return true
	})
	return n
}

// hammer sends requests from 16 workers until stop is closed, and returns how many there were and how many failed.
func hammer(c *http.Client, method string, stop <-chan struct{}) (sent, failed int64, last error) {
	var wg sync.WaitGroup
	var n, bad atomic.Int64
	var mu sync.Mutex
	for range 16 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				req, _ := http.NewRequest(method, svc, strings.NewReader(map[string]string{http.MethodPost: "body"}[method]))
				req.Header.Set("X-Number", fmt.Sprint(n.Add(1)))
				resp, err := c.Do(req)
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				if err != nil {
					bad.Add(1)
					mu.Lock()
					last = err
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return n.Load(), bad.Load(), last
}

// One of two backends is restarted under load from 16 workers: no GET fails, whenever the resolver speaks; no POST does if it
// speaks early; and none is acted on twice.
func TestTrap15RestartOfABackendFailsNoRequest(t *testing.T) {
	pauses := 150 * time.Millisecond
	if testing.Short() {
		pauses = 50 * time.Millisecond
	}
	for _, h2 := range []bool{false, true} {
		for _, told := range []string{"never", "at once", "early"} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				name := fmt.Sprintf("h2c %v, told %s, %s", h2, told, method)
				got := &received{}
				backends := []*backend{{addr: "127.0.0.1:0"}, {addr: "127.0.0.1:0"}}
				for _, b := range backends {
					b.handler, b.protocol = got, clearText(h2)
					b.start(t)
				}
				r := &script{first: addrs(backends[0].addr, backends[1].addr), started: make(chan struct{}, 1)}
				tr := &Transport{Resolver: r, Base: &http.Transport{Protocols: clearText(h2)}}
				stop := make(chan struct{})
				var wg sync.WaitGroup
				var sent, failed int64
				var last error
				wg.Go(func() { sent, failed, last = hammer(&http.Client{Transport: tr}, method, stop) })
				<-r.started
				wait(pauses)
				if told != "never" {
					_ = r.sink().Update(addrs(backends[0].addr))
				}
				if told == "early" {
					wait(200 * time.Millisecond)
				}
				backends[1].stop()
				wait(pauses)
				backends[1].start(t)
				_ = r.sink().Update(addrs(backends[0].addr, backends[1].addr))
				wait(pauses)
				close(stop)
				wg.Wait()
				s := one(t, tr)
				t.Logf("%s: %d of %d failed, %d retries, %d refused by budget", name, failed, sent, s.Retries, s.RefusedByBudget)
				if failed > 0 && (method == http.MethodGet || told == "early") {
					t.Errorf("%s: %d of %d failed: %v", name, failed, sent, last)
				}
				if n := got.twice(); n > 0 && method == http.MethodPost {
					t.Errorf("%s: %d requests were acted on twice", name, n)
				}
				tr.Close()
				for _, b := range backends {
					b.stop()
				}
			}
		}
	}
}

// wait waits in real time, for servers.
func wait(d time.Duration) { <-time.NewTimer(d).C }

// One of three is dead: refusing from the start, or killed under load.
func TestOneDeadBackendOfThreeFailsNoGET(t *testing.T) {
	for _, p := range []evenkeel.Policy{nil, picker.RoundRobin{}} {
		for _, h2 := range []bool{false, true} {
			var list []string
			backends := []*backend{{addr: "127.0.0.1:0"}, {addr: "127.0.0.1:0"}, {addr: "127.0.0.1:0"}}
			for _, b := range backends {
				b.handler, b.protocol = &received{}, clearText(h2)
				b.start(t)
				list = append(list, b.addr)
			}
			tr := &Transport{Resolver: &script{first: addrs(list...)}, Config: evenkeel.Config{Policy: p}, Base: &http.Transport{Protocols: clearText(h2)}}
			backends[0].stop()
			for _, phase := range []string{"dead from the start", "killed"} {
				stop := make(chan struct{})
				var wg sync.WaitGroup
				var sent, failed int64
				var last error
				wg.Go(func() { sent, failed, last = hammer(&http.Client{Transport: tr}, http.MethodGet, stop) })
				wait(100 * time.Millisecond)
				if phase == "killed" {
					_ = backends[0].server.Close()
				}
				wait(150 * time.Millisecond)
				close(stop)
				wg.Wait()
				s := one(t, tr)
				t.Logf("h2c %v, %T, %s: %d of %d failed, %d retries, %d refused by budget", h2, p, phase, failed, sent, s.Retries, s.RefusedByBudget)
				if failed > 0 {
					t.Errorf("h2c %v, %T, %s: %d of %d failed: %v", h2, p, phase, failed, sent, last)
				}
				if phase == "dead from the start" {
					backends[0].start(t)
				}
			}
			tr.Close()
			for _, b := range backends {
				b.stop()
			}
		}
	}
}

// Trap 22: a server that refuses a body before it was sent gets nothing of it, and the next one all.
func TestTrap22RefusedExpectationIsRetriedWithTheWholeBody(t *testing.T) {
	var first atomic.Bool
	s := serve(t, 2, func(w http.ResponseWriter, r *http.Request) {
		if first.CompareAndSwap(false, true) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.Copy(w, r.Body)
	}, plain)
	tr := &Transport{Resolver: static(s), Retry: &RetryConfig{Statuses: []int{503}}}
	req := request(t, "PUT", svc, strings.NewReader("the body"))
	req.Header.Set("Expect", "100-continue")
	resp, err := client(t, tr).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "the body" || err != nil {
		t.Errorf("%s: %q, %v", resp.Status, body, err)
	}
}
