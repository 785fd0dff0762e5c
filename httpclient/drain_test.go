package httpclient

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// drainedOver are what drains have to work with.
var drainedOver = []struct {
	name, url string
	start     func(*testing.T, http.HandlerFunc) []*server
}{
	{"HTTP/1.1", "http://svc.test", func(t *testing.T, h http.HandlerFunc) []*server { return serve(t, 2, h, plain) }},
	{"HTTP/2", "https://example.com", func(t *testing.T, h http.HandlerFunc) []*server { return serve(t, 2, h, withHTTP2) }},
}

// download answers /slow with a beginning, and with the rest when release is closed or the client has left; /wait with
// nothing until then.
func download(release <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			_, _ = io.WriteString(w, "begin ")
			w.(http.Flusher).Flush()
		}
		if r.URL.Path == "/slow" || r.URL.Path == "/wait" {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, "end")
	}
}

// rig is a Transport with two endpoints, of which the first is used alone at first.
type rig struct {
	*script
	tr      *Transport
	c       *http.Client
	servers []*server
	url     string
	release chan struct{}
}

func newRig(t *testing.T, p int, limit time.Duration) *rig {
	r := &rig{url: drainedOver[p].url, release: make(chan struct{})}
	r.servers = drainedOver[p].start(t, download(r.release))
	r.script = &script{first: addrs(r.servers[0].addr), started: make(chan struct{}, 1)}
	r.tr = &Transport{Resolver: r.script, Base: r.servers[0].trusting(), Config: evenkeel.Config{Policy: picker.RoundRobin{}, DrainTimeout: limit}}
	r.c = client(t, r.tr)
	fetch(t, r.c, r.url+"/")
	<-r.started
	return r
}

func (r *rig) list(t *testing.T, list ...Address) {
	t.Helper()
	if err := r.sink().Update(list); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) at(i int) Address { return Address{Addr: r.servers[i].addr} }

// open begins a download from the first endpoint.
func (r *rig) open(t *testing.T) *http.Response {
	t.Helper()
	resp, err := r.c.Do(request(t, http.MethodGet, r.url+"/slow", nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func (r *rig) inFlight(i int) int64 { return onlyGroup(r.tr).pool.InFlight(r.servers[i].addr) }

// cutOff reads to the end, and wants it to be a cut-off that came no sooner than limit after from.
func cutOff(t *testing.T, resp *http.Response, from time.Time, limit time.Duration) {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if took := time.Since(from); string(body) != "begin " || !errors.Is(err, ErrDrained) || took < limit || took > limit+5*time.Second {
		t.Errorf("%q, %v after %v, want to be cut off after %v", body, err, took, limit)
	}
}

func TestDownloadSurvivesThatItsEndpointLeaves(t *testing.T) {
	for p := range drainedOver {
		for _, limit := range []time.Duration{0, time.Hour} {
			r := newRig(t, p, limit)
			resp := r.open(t)
			r.list(t, r.at(1))
			for range 5 {
				fetch(t, r.c, r.url+"/")
			}
			if got := r.servers[1].requests.Load(); got != 5 || r.inFlight(0) != 1 {
				t.Errorf("%s: %d requests on the new endpoint, %d in flight on the old one", drainedOver[p].name, got, r.inFlight(0))
			}
			close(r.release)
			body, err := io.ReadAll(resp.Body)
			if string(body) != "begin end" || err != nil {
				t.Errorf("%s: %q, %v", drainedOver[p].name, body, err)
			}
			eventually(t, "the connections are closed", func() bool { return r.servers[0].open.Load() == 0 && r.inFlight(0) == 0 })
		}
	}
}

func TestDownloadIsCutOffAtTheLimit(t *testing.T) {
	const limit = 300 * time.Millisecond
	for p := range drainedOver {
		r := newRig(t, p, limit)
		resp := r.open(t)
		waits := make(chan error, 1)
		go func() { // on a connection that was used before, or is: net/http would send it again
			req := request(t, http.MethodGet, r.url+"/wait", nil)
			resp, err := r.c.Do(req.WithContext(WithoutRetry(req.Context())))
			if err == nil {
				resp.Body.Close()
			}
			waits <- err
		}()
		eventually(t, "both are on their way", func() bool { return r.servers[0].requests.Load() == 3 })
		from := time.Now()
		r.list(t, r.at(1))
		cutOff(t, resp, from, limit)
		if err := <-waits; !errors.Is(err, ErrDrained) || errors.Is(err, ErrUnreached) {
			t.Errorf("%s: who waited for an answer got %v", drainedOver[p].name, err)
		}
		eventually(t, "all is over", func() bool { return r.servers[0].open.Load() == 0 && r.inFlight(0) == 0 })
		fetch(t, r.c, r.url+"/")
		if r.servers[0].requests.Load() != 3 {
			t.Errorf("%s: %d requests reached the endpoint, want 3", drainedOver[p].name, r.servers[0].requests.Load())
		}
		// If it comes back later, it is as good as new.
		r.list(t, r.at(0))
		fetch(t, r.c, r.url+"/")
		if r.servers[0].requests.Load() != 4 {
			t.Errorf("%s: the endpoint is not used again", drainedOver[p].name)
		}
	}
}

func TestEndpointThatComesBackKeepsItsConnection(t *testing.T) {
	for p := range drainedOver {
		r := newRig(t, p, time.Hour)
		resp := r.open(t)
		before := endpointStats(t, one(t, r.tr), r.servers[0].addr)
		r.list(t, r.at(1))
		r.list(t, r.at(0))
		after := endpointStats(t, one(t, r.tr), r.servers[0].addr)
		if after.Picks != before.Picks || after.InFlight != 1 {
			t.Errorf("%s: %+v is back as %+v", drainedOver[p].name, before, after)
		}
		close(r.release)
		if body, err := io.ReadAll(resp.Body); string(body) != "begin end" || err != nil {
			t.Errorf("%s: %q, %v", drainedOver[p].name, body, err)
		}
		for range 5 {
			fetch(t, r.c, r.url+"/")
		}
		if n := r.servers[0].conns.Load(); n != 1 {
			t.Errorf("%s: %d connections were accepted, want 1", drainedOver[p].name, n)
		}
		if len(onlyGroup(r.tr).leaving.all) != 0 {
			t.Errorf("%s: it is still leaving", drainedOver[p].name)
		}
	}
}

// By the operator's word, or by its weight.
func TestListedEndpointIsDrained(t *testing.T) {
	zero := evenkeel.WeightOf(0)
	for p := range drainedOver {
		for _, how := range []struct {
			name         string
			drain, after func(t *testing.T, r *rig)
		}{
			{"Drain", func(t *testing.T, r *rig) {
				if !r.tr.Drain(r.servers[0].addr) || r.tr.Drain("127.0.0.1:1") || r.tr.Drain("no address:") {
					t.Error("Drain knows the wrong ones")
				}
			}, func(t *testing.T, r *rig) {
				if !r.tr.Resume(r.servers[0].addr) || r.tr.Resume("127.0.0.1:1") {
					t.Error("Resume knows the wrong ones")
				}
			}},
			{"weight 0", func(t *testing.T, r *rig) { r.list(t, Address{r.servers[0].addr, zero}, r.at(1)) },
				func(t *testing.T, r *rig) { r.list(t, r.at(0), r.at(1)) }},
		} {
			r := newRig(t, p, 0)
			r.list(t, r.at(0), r.at(1))
			for range 4 {
				fetch(t, r.c, r.url+"/")
			}
			how.drain(t, r)
			eventually(t, "its connections close", func() bool { return r.servers[0].open.Load() == 0 })
			before := r.servers[0].requests.Load()
			for range 6 {
				fetch(t, r.c, r.url+"/")
			}
			if got := r.servers[0].requests.Load(); got != before || r.servers[1].open.Load() == 0 {
				t.Errorf("%s, %s: %d requests on the drained endpoint", drainedOver[p].name, how.name, got-before)
			}
			how.after(t, r)
			for range 6 {
				fetch(t, r.c, r.url+"/")
			}
			if got := r.servers[0].requests.Load(); got < before+2 || r.servers[0].open.Load() == 0 {
				t.Errorf("%s, %s: %d requests after that", drainedOver[p].name, how.name, got-before)
			}
		}
	}
}

func TestDrainedEndpointIsCutOffAtTheLimitAndResumed(t *testing.T) {
	const limit = 300 * time.Millisecond
	for p := range drainedOver {
		r := newRig(t, p, limit)
		resp := r.open(t)
		r.list(t, r.at(0), r.at(1))
		from := time.Now()
		r.tr.Drain(r.servers[0].addr)
		cutOff(t, resp, from, limit)
		eventually(t, "all is over", func() bool { return r.servers[0].open.Load() == 0 && r.inFlight(0) == 0 })
		if e := endpointStats(t, one(t, r.tr), r.servers[0].addr); e.Success != 1 || e.State != evenkeel.Draining {
			t.Errorf("%s: it is blamed for what was not its fault: %+v", drainedOver[p].name, e)
		}
		before := r.servers[0].requests.Load()
		r.tr.Resume(r.servers[0].addr)
		for range 4 {
			fetch(t, r.c, r.url+"/")
		}
		if got := r.servers[0].requests.Load() - before; got < 1 {
			t.Errorf("%s: %d requests after Resume", drainedOver[p].name, got)
		}
	}
}

// Whatever of an endpoint's leaving and coming back a Close falls into, nothing is left open.
func TestBug58CloseRacingDrainsLeaksNothing(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	release := make(chan struct{})
	s := serve(t, 2, download(release), plain)
	rounds := 200
	if testing.Short() {
		rounds = 40
	}
	for range rounds {
		r := &script{first: addrs(s[0].addr), started: make(chan struct{}, 1)}
		tr := &Transport{Resolver: r, Config: evenkeel.Config{Policy: picker.RoundRobin{}, DrainTimeout: time.Millisecond}}
		c := &http.Client{Transport: tr}
		resp, err := c.Do(request(t, http.MethodGet, svc+"slow", nil))
		if err != nil {
			t.Fatal(err)
		}
		<-r.started
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
			tr.Close,
		} {
			wg.Go(f)
		}
		wg.Wait()
		resp.Body.Close()
		if tr.Drain(s[0].addr) || tr.Resume(s[0].addr) {
			t.Fatal("a closed Transport drains")
		}
	}
	close(release)
	for i := range s {
		eventually(t, "no connection is open", func() bool { return s[i].open.Load() == 0 })
		s[i].Close()
	}
	goleak.VerifyNone(t, ignore)
}

// onlyOf calls f with the target's group, if the Transport is not closed yet.
func onlyOf(tr *Transport, f func(*group)) {
	if fl := tr.running(); fl != nil {
		for _, g := range *fl.groups.Load() {
			f(g)
		}
	}
}
