package httpclient

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
)

// Bodies that nobody closes are no longer believed after ten minutes without the end of a request, and are counted; later ends
// of those are no others'.
func TestTrap9BodiesThatAreNeverClosedAreNoLongerBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := single(t, func(req *http.Request) (*http.Response, error) {
			resp := answer(req, 200, "x")
			resp.ContentLength = -1
			return resp, nil
		})
		var open []io.Closer
		for range 50 {
			resp, err := tr.RoundTrip(request(t, "GET", svc, nil))
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, resp.Body)
		}
		stats := func() evenkeel.EndpointStats { return one(t, tr).Endpoints[0] }
		time.Sleep(9 * time.Minute)
		if e := stats(); e.InFlight != 50 || e.Leaked != 0 {
			t.Errorf("after 9 minutes: in flight %d, leaked %d, want 50 and 0", e.InFlight, e.Leaked)
		}
		time.Sleep(2 * time.Minute)
		if e := stats(); e.InFlight != 0 || e.Leaked != 50 {
			t.Errorf("after 11 minutes: in flight %d, leaked %d, want 0 and 50", e.InFlight, e.Leaked)
		}
		resp, err := tr.RoundTrip(request(t, "GET", svc, nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, body := range open[:20] {
			body.Close()
		}
		if e := stats(); e.InFlight != 1 || e.Leaked != 30 || e.Success != 1 {
			t.Errorf("some ended late: in flight %d, leaked %d, success %v, want 1, 30 and 1", e.InFlight, e.Leaked, e.Success)
		}
		resp.Body.Close()
	})
}

// collected runs the garbage collector until ok.
func collected(t *testing.T, what string, ok func() bool) {
	t.Helper()
	eventually(t, what, func() bool { runtime.GC(); return ok() })
}

// drop sends a request and loses its answer.
//
//go:noinline
func drop(t *testing.T, c *http.Client, url string) {
	resp, err := c.Do(request(t, http.MethodGet, url, nil))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = resp.Body.Read(make([]byte, 1)) // and reads on no further
}

// endless answers with more than is ever read at once.
func endless(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, "begin")
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func TestTrap9DroppedBodiesAreClosedByTheCollector(t *testing.T) {
	const n = 50
	for _, over := range agedOver {
		for _, heals := range []bool{true, false} {
			s := serve(t, 1, endless, over.start)
			tr := &Transport{Resolver: static(s), Base: trustingAll(over.name, s), HealLeaks: heals}
			c := client(t, tr)
			for range n {
				drop(t, c, over.url)
			}
			if got := inFlight(tr); heals && got == 0 || !heals && got != n {
				t.Errorf("%s: %d in flight after %d answers were dropped", over.name, got, n)
			}
			if !heals {
				for range 3 {
					runtime.GC()
				}
				if st := one(t, tr); inFlight(tr) != n || st.Healed != 0 {
					t.Errorf("%s: %d in flight, %d healed, and nobody has asked for it", over.name, inFlight(tr), st.Healed)
				}
				s[0].CloseClientConnections()
				continue
			}
			collected(t, "all are closed", func() bool { return inFlight(tr) == 0 })
			if st := one(t, tr); st.Healed != n || st.Endpoints[0].Success != 1 || st.Endpoints[0].Leaked != 0 {
				t.Errorf("%s: %d healed, success %v, want %d and 1", over.name, st.Healed, st.Endpoints[0].Success, n)
			}
			tr.Close()
			eventually(t, "no connection is open", func() bool { return s[0].open.Load() == 0 })
		}
	}
}

// A caller may do nothing more with a body than one Read, which takes its time.
func TestBodyIsNotCollectedUnderItsLastRead(t *testing.T) {
	proceed := make(chan struct{})
	s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-proceed
		_, _ = io.WriteString(w, "late")
	}, plain)
	tr := &Transport{Resolver: static(s), HealLeaks: true}
	c := client(t, tr)
	resp, err := c.Do(request(t, http.MethodGet, svc, nil))
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	go func(body io.Reader) {
		var b [10]byte
		n, err := body.Read(b[:])
		if err != nil && err != io.EOF {
			got <- err.Error()
			return
		}
		got <- string(b[:n])
	}(resp.Body)
	for range 20 {
		runtime.GC()
		wait(time.Millisecond)
	}
	close(proceed)
	if text := <-got; text != "late" {
		t.Errorf("read %q", text)
	}
}

// Whoever closes bodies, or reads them to their end, sees no difference but the trailers' map being a copy's.
func TestHealedAnswersAreAsOthersAre(t *testing.T) {
	for _, over := range agedOver {
		s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/undeclared" {
				w.Header().Set("Trailer", "X-Declared")
			}
			_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
			if r.URL.Path != "/undeclared" {
				w.Header().Set("X-Declared", "1")
			}
			w.Header().Set(http.TrailerPrefix+"X-Other", "2")
		}, over.start)
		tr := &Transport{Resolver: static(s), Base: trustingAll(over.name, s), HealLeaks: true}
		c := client(t, tr)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				path, declared := "", "1"
				if i > 10 {
					path, declared = "undeclared", ""
				}
				req := request(t, "GET", over.url+path, nil)
				resp, err := tr.RoundTrip(req)
				if err != nil {
					t.Error(err)
					return
				}
				if resp.Request != req {
					t.Error("the answer is another request's")
				}
				if i%4 == 0 {
					resp.Body.Close()
					return
				}
				body, err := io.ReadAll(resp.Body)
				if len(body) != 100_000 || err != nil || resp.Trailer.Get("X-Declared") != declared || resp.Trailer.Get("X-Other") != "2" {
					t.Errorf("%s: %d bytes, %v, trailer %v", over.name, len(body), err, resp.Trailer)
				}
				if i%2 == 0 {
					resp.Body.Close()
				}
			})
		}
		wg.Wait()
		fetch(t, c, over.url)
		for range 3 {
			runtime.GC()
		}
		if st := one(t, tr); st.Healed != 0 || inFlight(tr) != 0 || st.Endpoints[0].Success != 1 {
			t.Errorf("%s: %d healed, %d in flight, success %v", over.name, st.Healed, inFlight(tr), st.Endpoints[0].Success)
		}
	}
}

func TestDroppedUpgradeIsClosedByTheCollector(t *testing.T) {
	s := serve(t, 1, echoUpgrade, plain)
	tr := &Transport{Resolver: static(s), HealLeaks: true}
	defer tr.Close()
	func() {
		conn := upgrade(t, tr, svc)
		if _, err := io.WriteString(conn, "again\n"); err != nil {
			t.Error(err)
		}
		var b [6]byte
		if _, err := io.ReadFull(conn, b[:]); string(b[:]) != "again\n" {
			t.Errorf("%q, %v", b, err)
		}
		if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil && err != http.ErrNotSupported {
			t.Error(err)
		}
	}()
	collected(t, "it is closed", func() bool { return inFlight(tr) == 0 && one(t, tr).Healed == 1 })
}

func TestAnswersWithoutABodyAreNotHealed(t *testing.T) {
	tr := single(t, func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 204, Body: http.NoBody, Request: req}, nil
	})
	tr.HealLeaks = true
	resp, err := tr.RoundTrip(request(t, "GET", svc, nil))
	if err != nil || resp.Body != http.NoBody {
		t.Errorf("%v, %v", resp, err)
	}
}

// What the doc comment says of it.
func TestHealingCostsFiveAllocations(t *testing.T) {
	cost := func(heals bool) float64 {
		tr := stubbed(t, &Transport{Resolver: Static{{Addr: "10.0.0.1"}}, HealLeaks: heals}, stubAnswer)
		req := request(t, http.MethodGet, svc, nil)
		roundTrip(t, tr, req)
		return testing.AllocsPerRun(1000, func() { roundTrip(t, tr, req) })
	}
	if n := cost(true) - cost(false); n < 3 || n > 6 {
		t.Errorf("%v allocations more, want about 5", n)
	} else {
		t.Logf("%v allocations more", n)
	}
}
