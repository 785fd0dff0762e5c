package interop

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/evenkeel/evenkeel/httpclient"
	"github.com/evenkeel/evenkeel/picker"
)

func webShares(servers []*webServer, load *traffic, n int64) []float64 {
	before := make([]int64, len(servers))
	for i, w := range servers {
		before[i] = w.calls.Load()
	}
	from := load.calls.Load()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for load.calls.Load() < from+n {
		<-tick.C
	}
	total := 0.0
	parts := make([]float64, len(servers))
	for i, w := range servers {
		parts[i] = float64(w.calls.Load() - before[i])
		total += parts[i]
	}
	for i := range parts {
		parts[i] /= max(total, 1)
	}
	return parts
}

// srvRecord points to the server by a name of its own.
func srvRecord(t *testing.T, w *webServer, target string, priority, weight uint16) dns.SRV {
	t.Helper()
	port, err := strconv.ParseUint(w.port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return dns.SRV{Target: target, Port: uint16(port), Priority: priority, Weight: weight}
}

// The ports and weights are the records', the next priority is for when the first has no addresses, and
// a server that fails takes nothing away.
func TestSRVRecordsThatChangeAndFailLoseNoRequest(t *testing.T) {
	const name = "_http._tcp.svc.test"
	ns := startNameServer(t)
	servers := []*webServer{startWebServers(t, "127.0.22.1")[0], startWebServers(t, "127.0.22.2")[0], startWebServers(t, "127.0.22.3")[0]}
	for i, host := range []string{"a.test", "b.test", "c.test"} {
		ns.set(host, answer{a: []string{servers[i].ip}})
	}
	both := answer{srv: []dns.SRV{srvRecord(t, servers[0], "a.test", 0, 1), srvRecord(t, servers[1], "b.test", 0, 3), srvRecord(t, servers[2], "c.test", 1, 1)}}
	ns.set(name, both)
	tr := transport(t, picker.WeightedRoundRobin{}, &httpclient.SRV{DNS: httpclient.DNS{Interval: 5 * time.Second, Resolver: ns.resolver()}})
	load := keepCalling(t, fetching(tr, "http://svc.test"))
	settles := func(what string, want ...float64) {
		t.Helper()
		var got []float64
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for got == nil || !near(got, want, 0.03) {
			if ctx.Err() != nil {
				t.Fatalf("%s: the shares are %.3f, want %.3f", what, got, want)
			}
			got = webShares(servers, load, 200)
		}
	}
	settles("the first priority", 0.25, 0.75, 0)
	ns.set(name, answer{code: dns.RcodeServerFailure})
	eventually(t, "the failure shows", func() bool { return resolveError(tr) != nil })
	settles("the server fails", 0.25, 0.75, 0)
	ns.set("a.test", answer{code: dns.RcodeNameError})
	ns.set("b.test", answer{})
	ns.set(name, both)
	settles("the names of the first have no addresses", 0, 0, 1)
	load.stop()
	load.check(t)
}
