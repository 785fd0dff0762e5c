package httpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
)

// agedOver are what connections can grow old with.
var agedOver = []struct {
	name, url string
	start     func(*httptest.Server)
}{
	{"HTTP/1.1", svc, plain},
	{"HTTPS/1.1", "https://example.com/", withTLS},
	{"HTTP/2", "https://example.com/", withHTTP2},
	{"h2c", svc, unencryptedHTTP2},
}

// trustingAll returns a Base for servers that were started by that.
func trustingAll(name string, s []*server) *http.Transport {
	if name == "h2c" {
		return baseFor("HTTP/2")
	}
	base := s[0].trusting()
	for _, other := range s[1:] {
		if base != nil {
			base.TLSClientConfig.RootCAs.AddCert(other.Certificate())
		}
	}
	return base
}

// young makes the connections of tr, which has a MaxConnAge and was not used yet, old after age, and has a look at each
// sweep.
func young(t testing.TB, tr *Transport, age time.Duration) {
	t.Helper()
	f, err := tr.start()
	if err != nil {
		t.Fatal(err)
	}
	f.aging.limit, f.aging.every = age, 0
}

// sweeps sweeps tr's only target until ok.
func sweeps(t testing.TB, tr *Transport, what string, ok func() bool) {
	t.Helper()
	eventually(t, what, func() bool {
		onlyOf(tr, func(g *group) { g.sweep(time.Now()) })
		return ok()
	})
}

// enough lets no more connections be replaced.
func enough(tr *Transport) {
	g := onlyGroup(tr)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ages.looked = time.Now().Add(time.Hour)
}

func replaced(t testing.TB, tr *Transport) uint64 { return one(t, tr).Replaced }

// Connections grow old all the time, and no request notices.
func TestConnectionsAreReplacedUnderLoadAndNoRequestFails(t *testing.T) {
	for _, over := range agedOver {
		s := serve(t, 3, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }, over.start)
		tr := &Transport{Resolver: static(s), Base: trustingAll(over.name, s), MaxConnAge: time.Hour, Retry: &RetryConfig{Disabled: true}}
		c := client(t, tr)
		young(t, tr, 20*time.Millisecond)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		var sent, failed atomic.Int64
		for range 8 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					sent.Add(1)
					req, _ := http.NewRequest(http.MethodPost, over.url, io.MultiReader(strings.NewReader("some"), strings.NewReader(" text")))
					resp, err := c.Do(req)
					if err == nil {
						var text []byte
						text, err = io.ReadAll(resp.Body)
						resp.Body.Close()
						if err == nil && string(text) != "some text" {
							err = fmt.Errorf("%s %q", resp.Status, text)
						}
					}
					if err != nil {
						failed.Add(1)
						t.Errorf("%s: %v", over.name, err)
						return
					}
				}
			})
		}
		eventually(t, "there is a target", func() bool { return len(tr.Snapshot()) == 1 })
		sweeps(t, tr, "connections were replaced", func() bool { return replaced(t, tr) >= 25 || failed.Load() > 0 })
		close(stop)
		wg.Wait()
		var got, conns, open int64
		for _, x := range s {
			got += x.requests.Load()
			conns += x.conns.Load()
		}
		if st := one(t, tr); got != sent.Load() || uint64(conns) < st.Replaced || st.ReplaceErrors > 0 {
			t.Errorf("%s: %d requests of %d came; %d connections, %d replacements, %v", over.name, got, sent.Load(), conns, st.Replaced, st.ReplaceError)
		}
		enough(tr)
		sweeps(t, tr, "the old ones have ended", func() bool {
			open = 0
			for _, x := range s {
				open += x.open.Load()
			}
			return open <= 3*8
		})
		t.Logf("%s: %d requests, %d connections, %d replacements, %d open at the end", over.name, sent.Load(), conns, replaced(t, tr), open)
		tr.Close()
		eventually(t, "none is open", func() bool { return s[0].open.Load()+s[1].open.Load()+s[2].open.Load() == 0 })
	}
}

// gate is a dialer that can be shut.
type gate struct {
	mu    sync.Mutex
	shut  chan struct{} // nil: open
	err   error         // of what is dialed
	dials atomic.Int64
}

func (g *gate) set(shut chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut, g.err = shut, err
}

func (g *gate) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	g.dials.Add(1)
	g.mu.Lock()
	shut, err := g.shut, g.err
	g.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if shut != nil {
		select {
		case <-shut:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}

// gated returns a Transport over one server whose dials go through a gate.
func gated(t *testing.T, over int, h http.HandlerFunc, c evenkeel.Config) (*Transport, *http.Client, *server, *gate) {
	s := serve(t, 1, h, agedOver[over].start)
	g := &gate{}
	base := trustingAll(agedOver[over].name, s)
	if base == nil {
		base = &http.Transport{}
	}
	base.DialContext = g.dial
	tr := &Transport{Resolver: static(s), Base: base, MaxConnAge: time.Hour, Config: c}
	young(t, tr, 10*time.Millisecond)
	return tr, client(t, tr), s[0], g
}

func TestNewConnectionIsReadyBeforeTheOldOneIsLeft(t *testing.T) {
	for i, over := range agedOver {
		tr, c, s, g := gated(t, i, hello, evenkeel.Config{})
		fetch(t, c, over.url)
		shut := make(chan struct{})
		g.set(shut, nil)
		sweeps(t, tr, "a new one is being made", func() bool { return g.dials.Load() == 2 })
		for range 5 {
			fetch(t, c, over.url)
		}
		if n, dials := s.conns.Load(), g.dials.Load(); n != 1 || dials != 2 {
			t.Errorf("%s: %d connections and %d dials while there is no new one", over.name, n, dials)
		}
		enough(tr)
		close(shut)
		eventually(t, "it is there", func() bool { return replaced(t, tr) == 1 })
		for range 5 {
			fetch(t, c, over.url)
		}
		eventually(t, "the old one is closed", func() bool { return s.open.Load() == 1 })
		if n, got := s.conns.Load(), s.requests.Load(); n != 2 || g.dials.Load() != 2 || got != 11 {
			t.Errorf("%s: %d connections, %d dials, %d requests, want 2, 2 and 11", over.name, n, g.dials.Load(), got)
		}
	}
}

func TestOldConnectionStaysIfNoneCanBeMade(t *testing.T) {
	for i, over := range agedOver {
		tr, c, s, g := gated(t, i, hello, evenkeel.Config{})
		fetch(t, c, over.url)
		down := errors.New("down")
		g.set(nil, down)
		sweeps(t, tr, "it was tried twice", func() bool { return one(t, tr).ReplaceErrors >= 2 })
		for range 5 {
			fetch(t, c, over.url)
		}
		if st := one(t, tr); !errors.Is(st.ReplaceError, down) || st.Replaced != 0 || s.conns.Load() != 1 || st.Endpoints[0].Success != 1 {
			t.Errorf("%s: %v, %d replaced, %d connections, success %v", over.name, st.ReplaceError, st.Replaced, s.conns.Load(), st.Endpoints[0].Success)
		}
		g.set(nil, nil)
		sweeps(t, tr, "it is replaced", func() bool { return replaced(t, tr) > 0 })
		fetch(t, c, over.url)
		if err := one(t, tr).ReplaceError; err != nil {
			t.Errorf("%s: %v after all is well", over.name, err)
		}
	}
}

// A busy endpoint of HTTP/1.1 has many connections, which all have successors before they are left.
func TestAllConnectionsOfAnEndpointHaveSuccessors(t *testing.T) {
	const n = 8
	for i, over := range agedOver[:2] {
		release := make(chan chan struct{}, 1)
		var held sync.WaitGroup
		tr, c, s, g := gated(t, i, func(w http.ResponseWriter, r *http.Request) {
			all := <-release
			release <- all
			held.Done()
			<-all
		}, evenkeel.Config{})
		burst := func() {
			all := make(chan struct{})
			release <- all
			held.Add(n)
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() { fetch(t, c, over.url) })
			}
			held.Wait()
			close(all)
			wg.Wait()
			<-release
		}
		tr.running().aging.every = time.Hour // one look
		burst()
		wait(20 * time.Millisecond)
		onlyGroup(tr).sweep(time.Now())
		eventually(t, "they are replaced", func() bool { return replaced(t, tr) == 1 })
		eventually(t, "they are closed", func() bool { return s.open.Load() == n })
		dials := g.dials.Load()
		burst()
		if s.conns.Load() != 2*n || dials != 2*n || g.dials.Load() != dials {
			t.Errorf("%s: %d connections, %d dials, then %d", over.name, s.conns.Load(), dials, g.dials.Load())
		}
	}
}

func TestDownloadOutlivesItsConnectionsAge(t *testing.T) {
	for i, over := range agedOver {
		for _, limit := range []time.Duration{0, 100 * time.Millisecond} {
			release := make(chan struct{})
			tr, c, s, _ := gated(t, i, download(release), evenkeel.Config{DrainTimeout: limit})
			resp, err := c.Get(over.url + "slow")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			from := time.Now()
			sweeps(t, tr, "it is replaced", func() bool { return replaced(t, tr) > 0 })
			enough(tr)
			fetch(t, c, over.url)
			if limit > 0 {
				go func() {
					for tr.running() != nil && s.open.Load() > 1 {
						onlyOf(tr, func(g *group) { g.sweep(time.Now()) })
					}
				}()
				cutOff(t, resp, from, limit)
				if e := one(t, tr).Endpoints[0]; e.Success != 1 || e.InFlight != 0 {
					t.Errorf("%s: it is blamed for it: %+v", over.name, e)
				}
				fetch(t, c, over.url)
				continue
			}
			close(release)
			if body, err := io.ReadAll(resp.Body); string(body) != "begin end" || err != nil {
				t.Errorf("%s: %q, %v", over.name, body, err)
			}
			sweeps(t, tr, "its connection is closed", func() bool { return s.open.Load() == 1 })
		}
	}
}
