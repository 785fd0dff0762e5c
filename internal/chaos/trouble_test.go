//go:build unix

package chaos

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// trouble is what happens to some of a fleet's servers for a while.
type trouble struct {
	name string
	// bad is how many servers it happens to.
	bad int
	// begin and end do it to one of them, and undo it; nil if bad is 0.
	begin, end func(*testing.T, *server)
	// meanwhile, if set, goes on during the trouble until ctx is done.
	meanwhile func(ctx context.Context, fleet []*server, clients []*client)
	// of are those who suffer it.
	of []contender
	// thin is how many clients share the requests of each contender over each adapter; 0 means one.
	thin int
	// http and grpc are the bars of the two adapters.
	http, grpc bars
}

// setting is where a trouble happens.
type setting struct {
	// size is the number of servers.
	size int
	// single servers do one request at a time.
	single bool
	// rate is the number of requests a second of each contender over each adapter; with single servers,
	// of all of them over each adapter.
	rate float64
	// warmUp is the time that clients have to get to know the servers, length that of the trouble, and
	// after the least time that is watched after it.
	warmUp, length, after time.Duration
	// tries is how often a machine that stands still may spoil it.
	tries int
}

// run is a trouble that happened.
type run struct {
	trouble
	setting
	fleet      []*server
	clients    []*client
	loads      []*load
	canary     *load
	begin, end time.Duration // of the trouble
}

// suffer runs a trouble with all who suffer it at once, and holds what they saw
// against its bars. It returns a table of that. A try that the machine disturbed is none.
func suffer(t *testing.T, tr trouble, in setting) (table string) {
	t.Helper()
	for try := range in.tries {
		t.Run(fmt.Sprint("try ", try+1), func(t *testing.T) { table = attempt(t, tr, in) })
		if table != "" || t.Failed() {
			return table
		}
	}
	t.Skipf("the machine stood still in each of %d tries", in.tries)
	return ""
}

func attempt(t *testing.T, tr trouble, in setting) (table string) {
	t.Helper()
	r := &run{trouble: tr, setting: in, fleet: startFleet(t, in.size)}
	for _, c := range tr.of {
		r.clients = append(r.clients, thin(t, newHTTP, c, r.fleet, tr.thin), thin(t, newGRPC, c, r.fleet, tr.thin))
	}
	if in.single {
		r.rate /= float64(len(tr.of))
		for _, s := range r.fleet {
			s.tell(t, "one at a time")
		}
	}
	r.startLoads(t)
	r.happen(t)
	canary := r.canary.seen().between(r.begin-r.warmUp, r.end)
	if n := len(canary.stuck()); float64(n) > mostStuck*float64(len(canary)) {
		t.Skipf("the machine stood still: of %d requests without any trouble %d took %v too long", len(canary), n, canaryWait)
	}
	until := r.watch(t)
	for _, l := range append(r.loads, r.canary) {
		l.stop()
	}
	all := make([]figures, len(r.clients))
	rows := make([]string, len(all))
	for i, c := range r.clients {
		all[i] = r.measure(c, r.loads[i], until)
		rows[i] = all[i].row(tr.name)
	}
	r.judge(t, all)
	return strings.Join(rows, "\n")
}

// startLoads lets the clients get to know the servers.
func (r *run) startLoads(t *testing.T) {
	t.Helper()
	r.canary = startLoad(newCanary(t, startFleet(t, 1)[0]), canaryRate, 1)
	t.Cleanup(r.canary.stop)
	for i, c := range r.clients {
		l := startLoad(c, r.rate, uint64(i+2))
		t.Cleanup(l.stop)
		r.loads = append(r.loads, l)
	}
	waitUntil(t, patience, "all servers have answered all clients", func() bool {
		for i, c := range r.clients {
			for _, s := range r.fleet {
				if len(r.loads[i].seen().well().to(c.addr(s))) == 0 {
					return false
				}
			}
		}
		return true
	})
	_ = pass(t.Context(), r.warmUp)
}

// happen is the trouble.
func (r *run) happen(t *testing.T) {
	t.Helper()
	r.begin = r.canary.now()
	for _, s := range r.fleet[:r.bad] {
		r.trouble.begin(t, s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), r.length)
	defer cancel()
	if r.meanwhile != nil {
		r.meanwhile(ctx, r.fleet, r.clients)
	}
	<-ctx.Done()
	for _, s := range r.fleet[:r.bad] {
		r.trouble.end(t, s)
	}
	r.end = r.canary.now()
}

// watch waits until everybody is back, and for no longer than the bars allow, and returns when that
// was.
func (r *run) watch(t *testing.T) (until time.Duration) {
	t.Helper()
	limit := max(r.http.returned, r.grpc.returned, r.http.recovered, r.grpc.recovered)
	if limit > 0 {
		limit += shareWindow
	}
	ctx, cancel := context.WithTimeout(t.Context(), max(limit, r.after))
	defer cancel()
	_ = pass(ctx, r.after)
	for !r.allBack() && pass(ctx, 5*windowStep) == nil {
	}
	return r.canary.now()
}

// allBack reports whether all contenders have recovered for good, as far as can be seen.
func (r *run) allBack() bool {
	now := r.canary.now()
	for i, c := range r.clients {
		f := r.measure(c, r.loads[i], now)
		there := f.back || r.bars(c).returned == 0
		if c.name != reference.name && (!there || f.recovered > now-r.end-successWindow) {
			return false
		}
	}
	return true
}

// waitUntil waits for what is about to become true.
func waitUntil(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for !ok() {
		if pass(ctx, 20*time.Millisecond) != nil {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}
