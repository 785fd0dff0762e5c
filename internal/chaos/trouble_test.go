//go:build unix

package chaos

import (
	"context"
	"fmt"
	"os"
	"slices"
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
	// meanwhile, if set, goes on during the trouble, at least until ctx is done if all is a list's.
	meanwhile func(ctx context.Context, t *testing.T, r *run)
	// everybody says that it happens to all servers, though not at once.
	everybody bool
	// cut says that connections break at once, with requests in them.
	cut bool
	// of are those who suffer it.
	of []contender
	// length, if set, is how long it lasts, in place of the setting's, and learn how much of that success
	// does not count: clients that send little need it to find out.
	length, learn time.Duration
	// thin is how many clients share the requests of each contender over each adapter; 0 means one.
	thin int
	// streams is how many long answers each client has under way besides, and gap how long one that
	// breaks may take to go on elsewhere.
	streams int
	gap     time.Duration
	// learning and guarded are the bars of policies that see failures and of those that do not.
	learning, guarded barsOf
}

// setting is where a trouble happens.
type setting struct {
	// size is the number of servers.
	size int
	// single servers do one request at a time at each port, so that there may be one contender only.
	single bool
	// adapters are those that take part.
	adapters []string
	// rate is the number of requests a second over each adapter of each contender whose part is 1.
	rate float64
	// warmUp is the time that clients have to get to know the servers, length that of the trouble, and
	// after the least time that is watched after it.
	warmUp, length, after time.Duration
	// tries is how often a machine that stands still may spoil it.
	tries int
	// atOnce is how many troubles of that setting two cores can carry at the same time.
	atOnce int
}

// run is a trouble that happened.
type run struct {
	trouble
	setting
	fleet      []*server
	clients    []*client
	loads      []*load
	keepers    map[*client]*keeper
	canary     *load
	begin, end time.Duration // of the trouble
	struck     time.Duration // when it had begun at all servers
	// returned is how long after the trouble the bad servers of a client who needed to send no more had
	// their share again: what it still sends then comes in no order.
	returned map[*client]time.Duration
	// possible is which part of the requests over each adapter could succeed, where servers do one at a
	// time.
	possible map[string]float64
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
	fmt.Fprintf(os.Stderr, "%s: the machine stood still in each of %d tries\n", t.Name(), in.tries)
	t.Skip("the machine stood still in each try")
	return ""
}

func attempt(t *testing.T, tr trouble, in setting) (table string) {
	t.Helper()
	r := &run{trouble: tr, setting: in, fleet: startFleet(t, in.size), keepers: map[*client]*keeper{}, returned: map[*client]time.Duration{}}
	if tr.length > 0 {
		r.setting.length = tr.length
	}
	for _, c := range tr.of {
		for _, adapter := range in.adapters {
			if c.name != reference.name || adapter != "http2" { // it has that of HTTP/1.1 as reference
				r.clients = append(r.clients, thin(t, adapter, c, r.fleet, tr.thin))
			}
		}
	}
	if in.single {
		for _, s := range r.fleet {
			s.tell(t, "one at a time")
		}
	}
	r.startLoads(t)
	r.happen(t)
	r.excuse(t, r.begin-r.warmUp, r.end, mostStuck, nil)
	until := r.watch(t)
	for _, l := range append(r.loads, r.canary) {
		l.stop()
	}
	for _, k := range r.keepers {
		k.stop()
	}
	all := make([]figures, len(r.clients))
	rows := make([]string, len(all))
	for i, c := range r.clients {
		all[i] = r.measure(c, r.loads[i], until)
		rows[i] = all[i].row(tr.name, r.possible[c.adapter])
	}
	canary := r.canary.seen().between(r.begin-r.warmUp, until)
	rows = append(rows, fmt.Sprintf("%-26s %d of %d requests without any trouble stuck", tr.name, len(canary.stuck()), len(canary)))
	if problems := r.judge(all); len(problems) > 0 {
		r.excuse(t, r.begin-r.warmUp, r.end, 2*mostBlamed, problems)
		r.excuse(t, r.begin-r.warmUp, until, mostBlamed, problems)
		t.Error(strings.Join(problems, "\n"))
	}
	return strings.Join(rows, "\n")
}

// excuse ends a try in which the machine stood still.
func (r *run) excuse(t *testing.T, from, to time.Duration, most float64, problems []string) {
	t.Helper()
	canary := r.canary.seen().between(from, to)
	if n := len(canary.stuck()); float64(n) > most*float64(len(canary)) {
		t.Skipf("the machine stood still: of %d requests without any trouble %d took %v too long\n%s",
			len(canary), n, canaryWait, strings.Join(problems, "\n"))
	}
}

// startLoads lets the clients get to know the servers.
func (r *run) startLoads(t *testing.T) {
	t.Helper()
	quiet := startFleet(t, 1)
	if !r.everybody && !r.single {
		quiet = append(quiet, r.fleet[r.bad:]...)
	}
	r.canary = startLoad(newCanary(t, quiet), canaryRate, 1)
	t.Cleanup(r.canary.stop)
	for i, c := range r.clients {
		rate := r.rate
		if !r.single {
			rate *= c.part
		}
		l := startLoad(c, rate, uint64(i+2))
		t.Cleanup(l.stop)
		r.loads = append(r.loads, l)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience/2)
	defer cancel()
	for who := r.unanswered(); who != ""; who = r.unanswered() {
		if pass(ctx, 20*time.Millisecond) != nil {
			t.Skipf("a server has not answered in %v: %s", patience/2, who)
		}
	}
	for _, c := range r.clients {
		if r.streams > 0 && c.name != reference.name {
			r.keepers[c] = keep(c, r.streams)
			t.Cleanup(r.keepers[c].stop)
		}
	}
	_ = pass(t.Context(), r.warmUp)
}

// unanswered is who has not had an answer of each server yet, "" for nobody. It happens to the default
// when a server was slow to begin with: others can do the work.
func (r *run) unanswered() string {
	for i, c := range r.clients {
		well := r.loads[i].seen().well()
		if slices.ContainsFunc(r.fleet, func(s *server) bool { return len(well.to(c.addr(s))) == 0 }) {
			return fmt.Sprint(c.name, " over ", c.adapter)
		}
	}
	return ""
}

// happen is the trouble.
func (r *run) happen(t *testing.T) {
	t.Helper()
	r.begin = r.canary.now()
	for _, s := range r.fleet[:r.bad] {
		r.trouble.begin(t, s)
	}
	r.struck = r.canary.now()
	before := r.capacity(t)
	ctx, cancel := context.WithTimeout(t.Context(), r.setting.length)
	defer cancel()
	if r.meanwhile != nil {
		r.meanwhile(ctx, t, r)
	}
	<-ctx.Done()
	after := r.capacity(t)
	for _, s := range r.fleet[:r.bad] {
		r.trouble.end(t, s)
	}
	r.end = r.canary.now()
	r.possible = r.possibly(before, after)
}

// watch waits until everybody is back, and for no longer than the bars allow, and returns when that
// was.
func (r *run) watch(t *testing.T) (until time.Duration) {
	t.Helper()
	var limit time.Duration
	for _, c := range r.clients {
		// Twice as long, to tell what is late by how much.
		limit = max(limit, r.bars(c).returned+shareWindow, 2*r.bars(c).recovered+successWindow)
	}
	ctx, cancel := context.WithTimeout(t.Context(), max(limit, r.after))
	defer cancel()
	_ = pass(ctx, r.after)
	for !r.allBack() && pass(ctx, 5*windowStep) == nil {
	}
	return r.canary.now()
}

// allBack reports whether all contenders have recovered for good, as far as can be seen. Those who
// have need send no more.
func (r *run) allBack() bool {
	now := r.canary.now()
	all := true
	for i, c := range r.clients {
		f := r.measure(c, r.loads[i], now)
		there := f.back || r.bars(c).returned == 0 || c.name == reference.name
		if there && f.recovered <= now-r.end-successWindow {
			if r.loads[i].cancel(); f.back {
				if _, known := r.returned[c]; !known {
					r.returned[c] = f.returned
				}
			}
			continue
		}
		all = all && c.name == reference.name
	}
	return all
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
