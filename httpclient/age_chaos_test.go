package httpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// Whatever happens to an endpoint while its connections are replaced, in whatever order, nothing is left open.
func TestBug58EverythingRacingReplacementsLeaksNothing(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	release := make(chan struct{})
	s := serve(t, 2, download(release), plain)
	rounds := 150
	if testing.Short() {
		rounds = 40
	}
	var all uint64
	for i := range rounds {
		r := &script{first: addrs(s[0].addr), started: make(chan struct{}, 1)}
		tr := &Transport{Resolver: r, MaxConnAge: time.Hour, HealLeaks: i%3 == 0,
			Config: evenkeel.Config{Policy: picker.RoundRobin{}, DrainTimeout: time.Duration(i%2) * time.Millisecond}}
		young(t, tr, time.Millisecond)
		c := &http.Client{Transport: tr}
		resp, err := c.Do(request(t, http.MethodGet, svc+"slow", nil))
		if err != nil {
			t.Fatal(err)
		}
		<-r.started
		eventually(t, "its connection is old", func() bool {
			onlyOf(tr, func(g *group) { g.sweep(time.Now()) })
			return onlyGroup(tr).mu.TryLock() && func() bool {
				defer onlyGroup(tr).mu.Unlock()
				seen := onlyGroup(tr).ages
				all += seen.replaced
				return seen.replaced > 0 || i%4 < 2 && seen.underway > 0 // in the middle of one, or of the next
			}()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		var wg sync.WaitGroup
		for _, f := range []func(){
			func() { _ = r.sink().Update(addrs(s[1].addr)) },
			func() { _ = r.sink().Update(addrs(s[0].addr, s[1].addr)) },
			func() { tr.Drain(s[0].addr); tr.Resume(s[0].addr) },
			func() { onlyOf(tr, func(g *group) { g.sweep(time.Now()) }) },
			func() { onlyOf(tr, func(g *group) { g.sweep(time.Now().Add(time.Second)) }) },
			func() {
				if resp, err := c.Get(svc); err == nil {
					resp.Body.Close()
				}
			},
			tr.CloseIdleConnections,
			func() { tr.Snapshot() },
			func() {
				if i%2 == 0 {
					tr.Close()
				} else {
					_ = tr.Shutdown(ctx)
				}
			},
		} {
			wg.Go(f)
		}
		wg.Wait()
		cancel()
		resp.Body.Close()
		tr.Close()
	}
	close(release)
	for i := range s {
		eventually(t, "no connection is open", func() bool { return s[i].open.Load() == 0 })
		s[i].Close()
	}
	goleak.VerifyNone(t, ignore)
	t.Logf("%d replacements were seen", all)
}

// A thousand endpoints, half of which come and go, while connections are replaced and some cannot be.
func TestTrap24NothingIsLeftOfThousandEndpointsWhoseConnectionsAreReplaced(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	s := serve(t, 1, hello, plain)[0]
	var dials atomic.Int64
	base := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		if dials.Add(1)%10 == 0 {
			return nil, errors.New("not now")
		}
		return (&net.Dialer{}).DialContext(ctx, network, s.addr)
	}}
	var lists [2][]Address
	for i := range 1500 {
		a := Address{Addr: fmt.Sprintf("10.0.%d.%d:80", i/250, i%250)}
		if i < 1000 {
			lists[0] = append(lists[0], a)
		}
		if i >= 500 {
			lists[1] = append(lists[1], a)
		}
	}
	r := &script{first: lists[0], started: make(chan struct{}, 1)}
	tr := &Transport{Resolver: r, Base: base, MaxConnAge: time.Hour, Config: evenkeel.Config{Policy: picker.RoundRobin{}, DrainTimeout: time.Minute}}
	young(t, tr, 5*time.Millisecond)
	c := &http.Client{Transport: tr}
	fetch(t, c, svc)
	<-r.started
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				resp, err := c.Get(svc)
				if errors.Is(err, ErrClosed) {
					return
				}
				if err != nil {
					continue // two endpoints that cannot be dialed one after the other
				}
				_, _ = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
		})
	}
	var replaced uint64
	wg.Go(func() {
		for i := 1; ; i++ {
			if err := r.sink().Update(lists[i%2]); err != nil {
				return // closed
			}
			onlyOf(tr, func(g *group) { g.sweep(time.Now()) })
			for _, st := range tr.Snapshot() {
				replaced = st.Replaced
			}
			if i == 10 {
				wg.Go(func() {
					if err := tr.Shutdown(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
		}
	})
	wg.Wait()
	if replaced == 0 {
		t.Error("nothing was replaced")
	}
	eventually(t, "no connection is open", func() bool { return s.open.Load() == 0 })
	s.Close()
	goleak.VerifyNone(t, ignore)
	t.Logf("%d replaced, %d dials", replaced, dials.Load())
}

// vip is one address with many machines behind it: each new connection goes to the next.
type vip struct {
	net.Listener
	mu       sync.Mutex
	machines []string
	next     int
	copies   sync.WaitGroup
}

func newVIP(t *testing.T) *vip {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &vip{Listener: l}
	v.copies.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			v.copies.Go(func() { v.pass(c) })
		}
	})
	return v
}

func (v *vip) pass(client net.Conn) {
	defer client.Close()
	v.mu.Lock()
	to := v.machines[v.next%len(v.machines)]
	v.next++
	v.mu.Unlock()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(server, client); server.Close() })
	both.Go(func() { _, _ = io.Copy(client, server); client.Close() })
	both.Wait()
}

func (v *vip) scaleTo(machines ...*server) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.machines = v.machines[:0]
	for _, m := range machines {
		v.machines = append(v.machines, m.addr)
	}
}

// Machines that are added behind an address that stays the same get their share within the age, over HTTP/2 too.
func TestScaleOutBehindOneAddressIsFoundByAge(t *testing.T) {
	s := serve(t, 4, hello, unencryptedHTTP2)
	v := newVIP(t)
	v.scaleTo(s[0])
	tr := &Transport{
		Resolver: &MinBackends{Resolver: Static{{Addr: v.Addr().String()}}, N: 8}, Base: baseFor("HTTP/2"),
		MaxConnAge: time.Hour, Config: evenkeel.Config{Policy: picker.RoundRobin{}},
	}
	c := client(t, tr)
	young(t, tr, 30*time.Millisecond)
	for range 16 {
		fetch(t, c, svc)
	}
	v.scaleTo(s...)
	sweeps(t, tr, "all were replaced", func() bool { return replaced(t, tr) >= 20 })
	enough(tr)
	for i := range s {
		s[i].requests.Store(0)
	}
	for range 80 {
		fetch(t, c, svc)
	}
	for i := range s {
		if n := s[i].requests.Load(); n < 10 || n > 35 {
			t.Errorf("machine %d has %d of 80 requests, want about 20", i, n)
		}
	}
	tr.Close()
	_ = v.Close()
	v.copies.Wait()
}
