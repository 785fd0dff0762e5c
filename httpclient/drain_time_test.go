package httpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// piped connects to servers that answer with a beginning, and with the rest when release is closed.
func piped(release <-chan struct{}) *http.Transport {
	return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			gone := make(chan struct{})
			buf := make([]byte, 4096)
			_, _ = there.Read(buf)
			_, _ = io.WriteString(there, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegin ")
			go func() {
				defer close(gone)
				_, _ = there.Read(buf)
			}()
			select {
			case <-release:
				_, _ = io.WriteString(there, "end")
				<-gone
			case <-gone:
			}
		}()
		return here, nil
	}}
}

// openBody sends a request and reads none of its body.
func openBody(t *testing.T, tr *Transport) *http.Response {
	t.Helper()
	resp, err := tr.RoundTrip(request(t, http.MethodGet, svc, nil))
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// A drain that is taken back in time has cut nobody off, and neither has an endpoint that was back in time.
func TestBackInTimeIsNotCutOff(t *testing.T) {
	for _, how := range []string{"drained", "left"} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			r := &script{first: addrs("10.0.0.1")}
			tr := &Transport{Resolver: r, Base: piped(release), Config: evenkeel.Config{DrainTimeout: 3 * time.Second}}
			defer tr.Close()
			resp := openBody(t, tr)
			update := func(list ...string) {
				if err := r.sink().Update(addrs(list...)); err != nil {
					t.Fatal(err)
				}
			}
			update("10.0.0.1", "10.0.0.2")
			if how == "left" {
				update("10.0.0.2")
			} else {
				tr.Drain("10.0.0.1")
			}
			time.Sleep(2900 * time.Millisecond)
			update("10.0.0.1", "10.0.0.2")
			tr.Resume("10.0.0.1")
			time.Sleep(time.Minute)
			close(release)
			if body, err := io.ReadAll(resp.Body); string(body) != "begin end" || err != nil {
				t.Errorf("%s: %q, %v", how, body, err)
			}
		})
	}
}

// Endpoints that leave one after the other have their time each, to the millisecond, with no goroutine of their own.
func TestEachEndpointHasItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 2500 * time.Millisecond
		r := &script{first: addrs("10.0.0.1", "10.0.0.2", "10.0.0.3")}
		type end struct {
			id string
			at time.Duration
		}
		origin := time.Now()
		tr := &Transport{Resolver: r, Base: piped(nil), Config: evenkeel.Config{Policy: picker.RoundRobin{}, DrainTimeout: limit}}
		defer tr.Close()
		done := make(chan end, 3)
		for range 3 {
			resp := openBody(t, tr)
			id := resp.Body.(*body).pick.Handle().addr
			go func() {
				_, err := io.ReadAll(resp.Body)
				if !errors.Is(err, ErrDrained) {
					t.Errorf("%s: %v", id, err)
				}
				done <- end{id, time.Since(origin)}
			}()
		}
		for i := range 3 {
			time.Sleep(1100 * time.Millisecond)
			if err := r.sink().Update(append(r.first[i+1:len(r.first):len(r.first)], Address{Addr: "10.0.0.9"})); err != nil {
				t.Fatal(err)
			}
			if i == 0 && !onlyGroup(tr).busy() {
				t.Error("a target is idle whose last requests are on their way")
			}
		}
		for i, a := range r.first {
			want := end{a.Addr + ":80", time.Duration(i+1)*1100*time.Millisecond + limit}
			if got := <-done; got != want {
				t.Errorf("cut off: %v, want %v", got, want)
			}
		}
		if n := len(onlyGroup(tr).leaving.all); n != 0 {
			t.Errorf("%d endpoints are still leaving", n)
		}
	})
}

// Without a limit there is nothing between net/http and its connections.
func TestConnectionsAreTrackedForALimitAlone(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Second} {
		r := newRig(t, 0, limit)
		_, tracked := onlyGroup(r.tr).endpoints[r.servers[0].addr].leaf().(*trackedLeaf)
		if tracked != (limit > 0) {
			t.Errorf("with a limit of %v connections are tracked: %v", limit, tracked)
		}
	}
}

// An endpoint that has lost its place in the subset is still in the list, and has its time as one that left.
func TestEndpointThatLostItsPlaceIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &script{first: addrs("10.0.0.1")}
		c := evenkeel.Config{DrainTimeout: 5 * time.Second, Subset: &subset.Config{Size: 1, Seed: 5, MinAvailable: -1}}
		tr := &Transport{Resolver: r, Base: piped(nil), Config: c}
		defer tr.Close()
		resp := openBody(t, tr)
		g := onlyGroup(tr)
		first := g.endpoints["10.0.0.1:80"]
		list := r.first
		for i := 2; first.selected; i++ {
			if list = append(list, Address{Addr: fmt.Sprintf("10.0.0.%d", i)}); i > 50 {
				t.Fatal("it is selected of 50")
			}
			if err := r.sink().Update(list); err != nil {
				t.Fatal(err)
			}
		}
		from := time.Now()
		_, err := io.ReadAll(resp.Body)
		if took := time.Since(from); !errors.Is(err, ErrDrained) || took != c.DrainTimeout {
			t.Errorf("%v after %v, want to be cut off after %v", err, took, c.DrainTimeout)
		}
		if err := r.sink().Update(r.first); err != nil { // selected again
			t.Fatal(err)
		}
		if again := openBody(t, tr); again.StatusCode != http.StatusOK || g.endpoints["10.0.0.1:80"] != first || first.cut.Load() {
			t.Errorf("it is not as good as new: %v", again.Status)
		}
	})
}
