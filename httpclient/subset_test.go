package httpclient

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// fourOf are subsets of four, two of which have to be available. All get requests.
func fourOf() evenkeel.Config {
	return evenkeel.Config{Policy: picker.RoundRobin{}, Subset: &subset.Config{Size: 4, Seed: 9, MinAvailable: 2}}
}

// doors are the connections of all servers together: made so far, and open.
func doors(servers []*server) (made, open int64) {
	for _, s := range servers {
		made += s.conns.Load()
		open += s.open.Load()
	}
	return made, open
}

// inUse are the servers that the only target has selected, and the others.
func inUse(t *testing.T, tr *Transport, servers []*server) (in, out []*server) {
	t.Helper()
	stats := one(t, tr)
	for _, s := range servers {
		if slices.ContainsFunc(stats.Endpoints, func(e evenkeel.EndpointStats) bool { return e.ID == s.addr }) {
			in = append(in, s)
		} else {
			out = append(out, s)
		}
	}
	return in, out
}

// watched are servers whose list the test changes, and a client that uses a part of them.
func watchedFleet(t *testing.T, n int, c evenkeel.Config) (*Transport, *http.Client, []*server, *script) {
	t.Helper()
	servers := serve(t, n, hello, plain)
	r := &script{first: static(servers), started: make(chan struct{}, 1)}
	tr := &Transport{Resolver: r, Config: c}
	cl := client(t, tr)
	fetch(t, cl, svc)
	<-r.started
	return tr, cl, servers, r
}

// visit makes requests until each of the selected endpoints has had one.
func visit(t *testing.T, tr *Transport, c *http.Client) {
	t.Helper()
	eventually(t, "each selected endpoint has had a request", func() bool {
		fetch(t, c, svc)
		return !slices.ContainsFunc(one(t, tr).Endpoints, func(e evenkeel.EndpointStats) bool { return e.Picks == 0 && e.Weight > 0 })
	})
}

// Whatever a resolver says about addresses besides which there are, the servers see no
// connection come or go.
func TestAttributeUpdatesOpenAndCloseNoConnection(t *testing.T) {
	for _, c := range []subset.Config{
		{Size: 4, MinAvailable: -1},
		{Size: 4, MinAvailable: -1, ClientIndex: subset.IndexOf(2)},
		{Size: 4, ClientIndex: subset.IndexOf(2), Algorithm: subset.UseRocksteadier},
	} {
		tr, cl, servers, r := watchedFleet(t, 16, evenkeel.Config{Subset: &c})
		visit(t, tr, cl)
		n := int64(len(one(t, tr).Endpoints))
		if made, open := doors(servers); made != n || open != n || n >= 16 {
			t.Fatalf("%+v: %d made and %d open, want one to each of %d", c, made, open, n)
		}
		for i := range 60 {
			list := slices.Clone(r.first)
			for k := range list {
				list[k].Weight = evenkeel.WeightOf(float64(1 + i*k))
			}
			slices.Reverse(list[i%8:])
			if err := r.sink().Update(list); err != nil {
				t.Fatal(err)
			}
			fetch(t, cl, svc)
		}
		made, open := doors(servers)
		if made != n || open != n {
			t.Errorf("%+v: 60 updates later %d made and %d open, want %d", c, made, open, n)
		}
		t.Logf("%+v: %d connections, 60 updates of weights, %d opened, %d closed", c, n, made-n, made-open)
		tr.Close()
	}
}

func TestMembershipUpdatesOpenOnlyWhatTheyMust(t *testing.T) {
	tr, cl, servers, r := watchedFleet(t, 16, fourOf())
	visit(t, tr, cl)
	in, out := inUse(t, tr, servers)
	without := func(gone *server) {
		t.Helper()
		var list []Address
		for _, s := range servers {
			if s != gone {
				list = append(list, Address{Addr: s.addr})
			}
		}
		if err := r.sink().Update(list); err != nil {
			t.Fatal(err)
		}
		visit(t, tr, cl)
	}
	want := func(what string, made, open int64) {
		t.Helper()
		eventually(t, what, func() bool { m, o := doors(servers); return m == made && o == open })
	}
	want("at first", 4, 4)
	without(out[0])
	want("one gone that was not selected", 4, 4)
	without(nil)
	want("that one back", 4, 4)
	without(in[0])
	want("one gone that was selected", 5, 4)
	without(nil)
	for range 8 { // it has had picks before
		fetch(t, cl, svc)
	}
	want("that one back", 6, 4)
	if now, _ := inUse(t, tr, servers); !slices.Equal(now, in) {
		t.Error("the subset of the same list is another one")
	}
}

// There are connections, and what keeps them, for those selected alone; who leaves has its
// request in flight ended in peace, and comes back.
func TestLeavesAreMadeForTheSelectedAlone(t *testing.T) {
	release := make(chan struct{})
	servers := serve(t, 12, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			w.(http.Flusher).Flush()
			<-release
		}
		_, _ = io.WriteString(w, "ok")
	}, plain)
	r := &script{first: static(servers), started: make(chan struct{}, 1)}
	var made atomic.Int64
	tr := &Transport{Resolver: r, Config: fourOf(), newLeaf: func(_ Target, addr string) leaf {
		made.Add(1)
		return fixedDial(mustTemplate(t), addr)
	}}
	cl := client(t, tr)
	fetch(t, cl, svc)
	<-r.started
	visit(t, tr, cl)
	in, out := inUse(t, tr, servers)
	if made.Load() != 4 {
		t.Errorf("%d leaves were made, want 4", made.Load())
	}
	slow := untilBusy(t, cl, in[0])
	list := static(append([]*server{}, servers...))
	for i, s := range servers { // those selected are drained but one, so that others come in
		if slices.Contains(in[:3], s) {
			list[i].Weight = evenkeel.WeightOf(0)
		}
	}
	if err := r.sink().Update(list); err != nil {
		t.Fatal(err)
	}
	visit(t, tr, cl)
	more, _ := inUse(t, tr, servers)
	if len(more) != 5 || made.Load() != 5 {
		t.Errorf("%d are selected and %d leaves were made, want 5: one more has to be available", len(more), made.Load())
	}
	// Now they leave for good: the first of them still has its request.
	if err := r.sink().Update(static(append(out, in[3]))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the idle connections that left are closed", func() bool { return in[1].open.Load() <= 1 && in[0].open.Load() >= 1 })
	close(release)
	for _, resp := range slow {
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "ok" || err != nil {
			t.Errorf("%q, %v from a server that left", body, err)
		}
	}
	eventually(t, "all connections that left are closed", func() bool { return in[0].open.Load()+in[1].open.Load()+in[2].open.Load() == 0 })
}

// untilBusy sends requests that last until one of them is at that server.
func untilBusy(t *testing.T, cl *http.Client, wanted *server) (open []*http.Response) {
	t.Helper()
	for before := wanted.requests.Load(); wanted.requests.Load() == before; {
		resp, err := cl.Do(request(t, "GET", svc+"slow", nil))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, resp)
	}
	return open
}

// The same over HTTP/2, where net/http keeps the connection of a request that ends later, for an
// endpoint that is removed and for one that is no longer selected.
func TestHTTP2ConnectionsThatLeaveCloseAfterTheirRequest(t *testing.T) {
	for _, gone := range []string{"removed", "not selected"} {
		release := make(chan struct{})
		s := serve(t, 8, func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-release
			_, _ = io.WriteString(w, "late")
		}, withHTTP2)
		r := &script{first: static(s[:1]), started: make(chan struct{}, 1)}
		one := &subset.Config{Size: 1, Seed: 9, MinAvailable: 1}
		tr := &Transport{Resolver: r, Base: s[0].trusting(), Config: evenkeel.Config{Subset: one}}
		cl := client(t, tr)
		resp, err := cl.Do(request(t, "GET", "https://example.com/", nil))
		if err != nil {
			t.Fatal(err)
		}
		<-r.started
		next := static(s[1:])
		if gone == "not selected" { // with seven more, it has to be another one's turn
			next = static(s)
			for g := onlyGroup(tr); ; one.Seed++ {
				c := evenkeel.Config{Subset: &subset.Config{Size: 1, Seed: one.Seed, MinAvailable: 1}}
				if err := g.pool.SetConfig(c); err != nil {
					t.Fatal(err)
				}
				if err := r.sink().Update(next); err != nil {
					t.Fatal(err)
				}
				if h := g.pool.Selected(); len(h) == 1 && h[0].addr != s[0].addr {
					break
				}
			}
		} else if err := r.sink().Update(next); err != nil {
			t.Fatal(err)
		}
		close(release)
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "late" || err != nil {
			t.Errorf("%s: %q, %v, want the whole body", gone, body, err)
		}
		eventually(t, gone+": its connection is closed", func() bool { return s[0].open.Load() == 0 })
	}
}

func mustTemplate(t *testing.T) *http.Transport {
	t.Helper()
	tmpl, err := template(nil)
	if err != nil {
		t.Error(err)
	}
	return tmpl
}

// What is added is given back by a sweep, which closes its idle connections, and it can be
// added again.
func TestAddedEndpointsAreGivenBackAndAddedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &script{}
		for i := range 40 {
			r.first = append(r.first, Address{Addr: fmt.Sprintf("10.0.0.%d", i)})
		}
		leaves := map[string]*idleCount{}
		tr := &Transport{Resolver: r, Config: fourOf(), newLeaf: func(_ Target, addr string) leaf {
			leaves[addr] = &idleCount{}
			return leaves[addr]
		}}
		defer tr.Close()
		ask := func(n int) {
			for range n {
				roundTrip(t, tr, request(t, http.MethodGet, svc, nil))
			}
		}
		ask(40)
		base := slices.Sorted(maps.Keys(leaves))
		if len(base) != 4 {
			t.Fatalf("leaves %v, want four", base)
		}
		drain := func(v float64) {
			list := slices.Clone(r.first)
			for i := range list {
				if slices.Contains(base[:3], list[i].Addr+":80") {
					list[i].Weight = evenkeel.WeightOf(v)
				}
			}
			if err := r.sink().Update(list); err != nil {
				t.Fatal(err)
			}
		}
		for round := 1; round <= 3; round++ {
			drain(0)
			ask(40)
			if len(leaves) != 5 {
				t.Fatalf("round %d: leaves %v, want one more than %v", round, slices.Sorted(maps.Keys(leaves)), base)
			}
			added := newcomer(leaves, base)
			if added.asked != 20*round || int(added.idle.Load()) != round-1 {
				t.Errorf("round %d: %d requests and %d times closed, want half of the requests, and before", round, added.asked, added.idle.Load())
			}
			drain(1)
			time.Sleep(59 * time.Second)
			if len(one(t, tr).Endpoints) != 5 {
				t.Errorf("round %d: given back too soon", round)
			}
			time.Sleep(3 * time.Second)
			if s := one(t, tr); len(s.Endpoints) != 4 || s.Listed != 40 || int(added.idle.Load()) != round {
				t.Errorf("round %d: %d selected of %d, its connections closed %d times", round, len(s.Endpoints), s.Listed, added.idle.Load())
			}
			for _, e := range onlyGroup(tr).endpoints {
				e.checkSelected(t, slices.Contains(base, e.addr))
			}
		}
	})
}

func newcomer(leaves map[string]*idleCount, base []string) *idleCount {
	for addr, l := range leaves {
		if !slices.Contains(base, addr) {
			return l
		}
	}
	return nil
}

func (e *endpoint) checkSelected(t *testing.T, want bool) {
	t.Helper()
	if e.selected != want || e.made.Load() != nil && e.retired.Load() == want {
		t.Errorf("%s is selected %v, retired %v", e.addr, e.selected, e.retired.Load())
	}
}

// idleCount is a leaf that counts.
type idleCount struct {
	asked int
	idle  atomic.Int64
}

func (c *idleCount) RoundTrip(req *http.Request) (*http.Response, error) {
	c.asked++
	return stubAnswer("", req)
}
func (c *idleCount) CloseIdleConnections() { c.idle.Add(1) }

func TestWrongSubsetsFailTheFirstRequestAndNameAll(t *testing.T) {
	for want, c := range map[string]subset.Config{
		"subset: Config.Size is -3":   {Size: -3},
		"EVENKEEL_TEST_UNSET":         {ClientIndex: subset.IndexFromEnv("EVENKEEL_TEST_UNSET")},
		"Config.ClientCount is 3":     {ClientIndex: subset.IndexOf(1), ClientCount: 3, Algorithm: 77},
		"httpclient: MaxTargets is -": {Size: -3},
	} {
		if want == "Config.ClientCount is 3" {
			want = "Config.Algorithm is 77"
		}
		tr := &Transport{Resolver: Static{{Addr: "10.0.0.1"}}, Config: evenkeel.Config{Subset: &c}, MaxTargets: -1}
		_, err := tr.RoundTrip(request(t, "GET", svc, nil))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
		tr.Close()
	}
}

// Snapshot shows how long the list is, and warnings.
func TestSnapshotShowsSubsetsAndTheirWarnings(t *testing.T) {
	tr, _, _, _ := watchedFleet(t, 8, fourOf())
	s := one(t, tr)
	if s.Listed != 8 || len(s.Endpoints) != 4 || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "Config.Size is 4") {
		t.Errorf("%d of %d, warnings %q", len(s.Endpoints), s.Listed, s.Warnings)
	}
}
