package httpclient

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// idlePipes connects to servers that answer all requests, and counts.
func idlePipes(made func(addr string)) *http.Transport {
	return &http.Transport{IdleConnTimeout: time.Hour, DialContext: func(_ context.Context, _, addr string) (net.Conn, error) {
		here, there := net.Pipe()
		made(addr)
		go func() {
			defer there.Close()
			buf := make([]byte, 4096)
			for {
				if _, err := there.Read(buf); err != nil {
					return
				}
				if _, err := io.WriteString(there, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
					return
				}
			}
		}()
		return here, nil
	}}
}

// A hundred connections that were made together are replaced over a fifth of their age, never more than five at
// a time, and by chance again a lifetime later.
func TestReplacementsAreSpread(t *testing.T) {
	for _, c := range []struct {
		n    int
		age  time.Duration
		most int           // in a second
		last time.Duration // when the first round has to be over
	}{
		{100, 100 * time.Second, 5, 105 * time.Second},
		{100, 5 * time.Second, 5, 26 * time.Second}, // too many at once: the bound decides
		{7, 10 * time.Second, 1, 18 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			at := map[string][]time.Duration{}
			var start time.Time
			base := idlePipes(func(addr string) {
				mu.Lock()
				defer mu.Unlock()
				at[addr] = append(at[addr], time.Since(start))
			})
			var list Static
			for i := range c.n {
				list = append(list, Address{Addr: fmt.Sprintf("10.0.0.%d", i)})
			}
			tr := &Transport{Resolver: list, Base: base, MaxConnAge: c.age, Config: evenkeel.Config{Policy: picker.RoundRobin{}}}
			start = time.Now()
			for range c.n {
				roundTripAll(t, tr)
			}
			time.Sleep(5 * c.age)
			tr.Close()
			synctest.Wait()
			perSecond := map[time.Duration]int{}
			var firsts []time.Duration
			mu.Lock()
			defer mu.Unlock()
			for addr, all := range at {
				if len(all) < 2 {
					t.Fatalf("%s was never replaced: %v", addr, all)
				}
				firsts = append(firsts, all[1])
				for i, d := range all[1:] {
					perSecond[d.Truncate(time.Second)]++
					if gap := d - all[i]; gap < c.age*4/5 {
						t.Errorf("%s was replaced after %v", addr, gap)
					}
				}
			}
			slices.Sort(firsts)
			worst := 0
			for _, n := range perSecond {
				worst = max(worst, n)
			}
			if worst > c.most || firsts[len(firsts)-1] > c.last || len(at) != c.n {
				t.Errorf("n=%d, age %v: %d in a second, first round from %v to %v", c.n, c.age, worst, firsts[0], firsts[len(firsts)-1])
			}
			t.Logf("n=%d, age %v: at most %d in a second, first round from %v to %v", c.n, c.age, worst, firsts[0], firsts[len(firsts)-1])
		})
	}
}

// An endpoint without connections has none to replace, and one that lost its place gets no new ones.
func TestOnlyEndpointsInUseAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int64
		base := idlePipes(func(string) { dials.Add(1) })
		base.IdleConnTimeout = 2 * time.Second
		r := &script{first: addrs("10.0.0.1")}
		tr := &Transport{Resolver: r, Base: base, MaxConnAge: 10 * time.Second}
		defer tr.Close()
		roundTripAll(t, tr)
		time.Sleep(time.Minute)
		if dials.Load() != 1 {
			t.Errorf("%d dials for one request", dials.Load())
		}
		base.IdleConnTimeout = 0
		roundTripAll(t, tr)
		tr.Drain("10.0.0.1")
		time.Sleep(time.Minute)
		if dials.Load() != 2 {
			t.Errorf("%d dials for two requests", dials.Load())
		}
	})
}

func TestAgeOutOfRangeIsRefusedWithEverythingElse(t *testing.T) {
	for _, c := range []struct {
		age  time.Duration
		want string
	}{
		{-1, "httpclient: MaxConnAge is -1ns, want 0 or 1s to 720h0m0s"},
		{time.Millisecond, "MaxConnAge is 1ms"},
		{1<<63 - 1, "MaxConnAge is 2562047h47m16.854775807s"},
		{-1 << 63, "MaxConnAge is -2562047h47m16.854775808s"},
	} {
		tr := &Transport{MaxConnAge: c.age, MaxTargets: -1, Base: &http.Transport{IdleConnTimeout: -1}}
		_, err := tr.RoundTrip(request(t, "GET", svc, nil))
		for _, want := range []string{c.want, "MaxTargets is -1", "Base.IdleConnTimeout is -1ns"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v\nwant %q in it", err, want)
			}
		}
	}
	for _, age := range []time.Duration{time.Second, 720 * time.Hour} {
		tr := &Transport{MaxConnAge: age}
		if _, err := tr.start(); err != nil {
			t.Error(err)
		}
		tr.Close()
	}
}

// Connections that have one request each are not tracked for it.
func TestAgeNeedsConnectionsThatAreKept(t *testing.T) {
	for _, base := range []*http.Transport{{DisableKeepAlives: true}, {MaxIdleConnsPerHost: -1}} {
		s := serve(t, 1, hello, plain)
		tr := &Transport{Resolver: static(s), Base: base, MaxConnAge: time.Second}
		c := client(t, tr)
		fetch(t, c, svc)
		if _, tracked := onlyGroup(tr).endpoints[s[0].addr].tracked(); tracked {
			t.Error("connections are tracked")
		}
		fetch(t, c, svc)
	}
	for name, c := range map[string]struct {
		base *http.Transport
		want int
	}{
		"default":            {nil, 64},
		"own":                {&http.Transport{MaxIdleConnsPerHost: 7}, 7},
		"all together":       {&http.Transport{MaxIdleConns: 5}, 5},
		"of any kind":        {&http.Transport{MaxConnsPerHost: 3, Protocols: protocols((*http.Protocols).SetHTTP1)}, 3},
		"HTTP/2 without TLS": {baseFor("HTTP/2"), 1},
	} {
		tmpl, err := template(c.base)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := agingOf(&Transport{MaxConnAge: time.Minute}, tmpl); a.conns != c.want || err != nil {
			t.Errorf("%s: %d, %v, want %d", name, a.conns, err, c.want)
		}
	}
}
