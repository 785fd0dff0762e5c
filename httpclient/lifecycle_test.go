package httpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestTrap4WaitForTheFirstListHonoursTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &Transport{Resolver: &script{}}
		defer tr.Close()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := (&http.Client{Transport: tr}).Do(request(t, "GET", svc, nil).WithContext(ctx))
		var te *TargetError
		var ue *url.Error
		if !errors.As(err, &te) || te.Target.Host != "svc.test" || !errors.As(err, &ue) || !ue.Timeout() {
			t.Errorf("%v, want a TargetError that is a timeout", err)
		}
		// The client's own time limit reaches a Transport as a context, too.
		_, err = (&http.Client{Transport: tr, Timeout: 50 * time.Millisecond}).Get(svc)
		if !errors.As(err, &ue) || !ue.Timeout() || !strings.Contains(err.Error(), "wait for the first list of addresses: context deadline exceeded") {
			t.Errorf("%v, want a timeout that says what it waited for", err)
		}
		if d := time.Since(start); d != 100*time.Millisecond {
			t.Errorf("waited for %v, want twice 50ms", d)
		}
	})
}

func TestRequestsWaitForTheFirstListAndGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &script{}
		tr := stubbed(t, &Transport{Resolver: r}, func(_ string, req *http.Request) (*http.Response, error) {
			return answer(req, 200, "x"), nil
		})
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { roundTripAll(t, tr) })
		}
		synctest.Wait()
		if err := r.sink().Update(addrs("10.0.0.1")); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

func TestBug58RacingFirstUsesMakeOneInstance(t *testing.T) {
	r := &script{first: addrs("10.0.0.1", "10.0.0.2")}
	var leaves atomic.Int64
	tr := &Transport{Resolver: r}
	tr.newLeaf = func(Target, string) leaf {
		leaves.Add(1)
		return leafFunc(func(req *http.Request) (*http.Response, error) { return answer(req, 204, ""), nil })
	}
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for range 64 {
		wg.Go(func() { <-begin; roundTripAll(t, tr) })
	}
	close(begin)
	wg.Wait()
	if r.watches.Load() != 1 || leaves.Load() != 2 {
		t.Errorf("%d watches and %d connections pools, want 1 and 2", r.watches.Load(), leaves.Load())
	}
	tr.Close()
	eventually(t, "the watch ends", func() bool { return r.ended.Load() == 1 })
}

func TestBug58CloseIsFinalWhateverRacesWithIt(t *testing.T) {
	rounds := 10_000
	if testing.Short() {
		rounds = 500
	}
	for i := range rounds {
		r := &script{first: addrs("10.0.0.1"), started: make(chan struct{}, 1)}
		tr := &Transport{Resolver: r}
		tr.newLeaf = func(Target, string) leaf {
			return leafFunc(func(req *http.Request) (*http.Response, error) { return answer(req, 204, ""), nil })
		}
		if i%2 == 0 {
			roundTripAll(t, tr)
			<-r.started
		}
		var wg sync.WaitGroup
		wg.Go(tr.Close)
		wg.Go(tr.Close)
		wg.Go(func() {
			if i%2 == 0 {
				_ = r.sink().Update(addrs("10.0.0.2", "10.0.0.3"))
			}
		})
		wg.Go(func() {
			resp, err := tr.RoundTrip(request(t, "GET", svc, nil))
			if err == nil {
				resp.Body.Close()
			} else if !errors.Is(err, ErrClosed) {
				t.Errorf("round %d: %v, want %v", i, err, ErrClosed)
			}
		})
		wg.Wait()
		if _, err := tr.RoundTrip(request(t, "GET", svc, nil)); !errors.Is(err, ErrClosed) {
			t.Fatalf("round %d: %v after Close, want %v", i, err, ErrClosed)
		}
		if i%2 == 0 && !errors.Is(r.sink().Update(nil), ErrClosed) {
			t.Fatal("a list was taken after Close")
		}
	}
}

func TestBug57NothingIsLeftOfThousandTransports(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") }, plain)
	for range 1000 {
		tr := &Transport{Resolver: static(s)}
		c := &http.Client{Transport: tr}
		fetch(t, c, svc)
		tr.Close()
		tr.Close()
	}
	s[0].Close()
	goleak.VerifyNone(t, ignore)
}

func TestClosedTransportOfNoUseIsClosed(t *testing.T) {
	tr := &Transport{}
	tr.CloseIdleConnections()
	if tr.Snapshot() != nil {
		t.Error("a Transport that was not used has targets")
	}
	tr.Close()
	if _, err := tr.RoundTrip(request(t, "GET", svc, nil)); !errors.Is(err, ErrClosed) {
		t.Errorf("%v, want %v", err, ErrClosed)
	}
}

func TestRequestInFlightOutlivesCloseAndItsConnectionDoesNot(t *testing.T) {
	for _, start := range []struct {
		name, url string
		f         func(*testing.T, http.HandlerFunc) []*server
	}{
		{"HTTP/1.1", svc, func(t *testing.T, h http.HandlerFunc) []*server { return serve(t, 1, h, plain) }},
		{"HTTP/2", "https://example.com/", func(t *testing.T, h http.HandlerFunc) []*server { return serve(t, 1, h, withHTTP2) }},
	} {
		ignore := goleak.IgnoreCurrent()
		release := make(chan struct{})
		s := start.f(t, func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-release
			_, _ = io.WriteString(w, "late")
		})
		tr := &Transport{Resolver: static(s), Base: s[0].trusting()}
		resp, err := tr.RoundTrip(request(t, "GET", start.url, nil))
		if err != nil {
			t.Fatal(err)
		}
		tr.Close()
		close(release)
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "late" || err != nil {
			t.Errorf("%s: %q, %v, want the whole body", start.name, body, err)
		}
		// The server is still up: what goleak would find is the client's connection.
		eventually(t, start.name+": the connection is closed", func() bool { return s[0].open.Load() == 0 })
		s[0].Close()
		goleak.VerifyNone(t, ignore)
	}
}

func TestIdleConnectionsCanBeClosedAndComeBack(t *testing.T) {
	s := serve(t, 2, hello, plain)
	tr := &Transport{Resolver: static(s)}
	c := client(t, tr)
	for range 2 {
		for range 20 {
			fetch(t, c, svc)
		}
		c.CloseIdleConnections()
		eventually(t, "the connections are closed", func() bool { return s[0].open.Load()+s[1].open.Load() == 0 })
	}
}

func TestConnectionsOfARemovedEndpointCloseAndItsRequestEnds(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, 2, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			w.(http.Flusher).Flush()
			<-release
		}
		_, _ = io.WriteString(w, "ok")
	}, plain)
	r := &script{first: addrs(s[0].addr), started: make(chan struct{}, 1)}
	tr := &Transport{Resolver: r}
	c := client(t, tr)
	fetch(t, c, svc)
	<-r.started
	resp, err := c.Do(request(t, "GET", svc+"slow", nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.sink().Update(addrs(s[1].addr)); err != nil {
		t.Fatal(err)
	}
	fetch(t, c, svc)
	if s[1].requests.Load() != 1 || s[0].open.Load() == 0 {
		t.Errorf("%d requests on the new endpoint, %d connections to the old one", s[1].requests.Load(), s[0].open.Load())
	}
	close(release)
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(body) != "ok" || err != nil {
		t.Errorf("%q, %v from the removed endpoint", body, err)
	}
	eventually(t, "the removed endpoint has no connections", func() bool { return s[0].open.Load() == 0 })
}

func TestTrap24NothingIsLeftOfThousandEndpointsClosedInMidFlap(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") }, plain)[0]
	base := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.addr)
	}}
	var lists [2][]Address
	for i := range 1500 { // each has 1,000, and they share 500
		a := Address{Addr: fmt.Sprintf("10.0.%d.%d:80", i/250, i%250)}
		if i < 1000 {
			lists[0] = append(lists[0], a)
		}
		if i >= 500 {
			lists[1] = append(lists[1], a)
		}
	}
	r := &script{first: lists[0], started: make(chan struct{}, 1)}
	tr := &Transport{Resolver: r, Base: base}
	c := &http.Client{Transport: tr}
	fetch(t, c, svc)
	<-r.started
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				resp, err := c.Get(svc)
				if err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					return
				}
				_, _ = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
		})
	}
	wg.Go(func() {
		for i := 1; ; i++ {
			if err := r.sink().Update(lists[i%2]); err != nil {
				return // closed
			}
			if i == 20 {
				wg.Go(tr.Close)
			}
		}
	})
	wg.Wait()
	s.Close()
	goleak.VerifyNone(t, ignore)
}
