//go:build unix

package chaos

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"
)

// fast is how long success may take to come back when a trouble is over: less than a window of
// its measurement.
const fast = time.Second

// troubles are what happens to servers that can do any number of requests at a time.
func troubles() []trouble {
	stop, cont := signals(syscall.SIGSTOP), signals(syscall.SIGCONT)
	working := order("work")
	all := []trouble{
		{name: "none", learning: noBars, guarded: noBars},
		{name: "killed", bad: 1, begin: killAtWork, end: restart, cut: true, learning: lostConnection, guarded: guardedLost},
		{name: "killed, three", bad: 3, begin: killAtWork, end: restart, cut: true, learning: lostConnection, guarded: guardedLost},
		{name: "stopped", bad: 1, begin: stop, end: cont, learning: hung, guarded: guardedHung},
		{name: "stopped, three", bad: 3, begin: stop, end: cont, learning: hung, guarded: guardedHung},
		{name: "refuses", bad: 1, begin: order("refuse"), end: order("open"), learning: lostConnection, guarded: guardedLost},
		{name: "accepts, says nothing", bad: 1, begin: order("mute"), end: order("open"),
			learning: barsOf{hanging, unconnected}, guarded: barsOf{silent, unconnected}},
		{name: "hangs", bad: 1, begin: order("hang"), end: working, learning: hung, guarded: guardedHung},
		{name: "resets half-way", bad: 1, begin: order("reset"), end: working, learning: failedBars, guarded: guardedReset},
		{name: "ten times slower", bad: 1, begin: order("slow"), end: working, learning: slowed, guarded: barsOf{slowly, slowly}},
		{name: "ten times slower, three", bad: 3, begin: order("slow"), end: working, learning: slowed, guarded: barsOf{slowly, slowly}},
		{name: "fails in 1 ms", bad: 1, begin: order("fail"), end: working, learning: failedBars, guarded: guardedFailed},
		{name: "fails in 1 ms, three", bad: 3, begin: order("fail"), end: working, learning: failedBars, guarded: guardedFailed},
		{name: "full", bad: 1, begin: order("overload"), end: working, learning: fullBars, guarded: barsOf{guardedFull, guardedFull}},
		{name: "full, three", bad: 3, begin: order("overload"), end: working, learning: fullBars, guarded: barsOf{guardedFullThree, guardedFullThree}},
		storm(),
		{name: "list flaps", meanwhile: flap, learning: noBars, guarded: noBars},
		{name: "three leave the list and return", meanwhile: leaveAndReturn, learning: noBars, guarded: noBars},
		{name: "restarted, one by one", meanwhile: restartEach, everybody: true, learning: restarted(4), guarded: restarted(6)},
		{name: "restarted, list first", meanwhile: restartEachUnlisted, everybody: true, learning: noBars, guarded: noBars},
	}
	for i := range all {
		all[i].of = append(slices.Clone(contenders), reference)
	}
	all = append(all, trouble{name: "fails, checks pass", of: append(checked(), reference), bad: 3,
		begin: failUnnoticed, end: workAfterChecks, learning: failedBars, guarded: guardedFailed})
	for i := range all {
		if all[i].bad > 1 {
			// Those who see failures themselves ask again when others cannot do the work. These can.
			all[i].learning.http.returned, all[i].learning.grpc.returned = 0, 0
		}
	}
	return all
}

// failUnnoticed makes a server fail all but health checks.
func failUnnoticed(t *testing.T, s *server) {
	t.Helper()
	s.tell(t, "fail")
	s.tell(t, "checks")
}

// workAfterChecks ends that, and looks whether there were checks meanwhile, of all that make some.
func workAfterChecks(t *testing.T, s *server) {
	t.Helper()
	var n int
	if _, err := fmt.Sscan(s.tell(t, "checks"), &n); err != nil || n < 10 {
		t.Errorf("%d checks passed while all else failed, want at least 10 (%v)", n, err)
	}
	s.tell(t, "work")
}

// storm is everybody full at once: all is refused, and all is well as soon as it is over.
func storm() trouble {
	b := bars{lost: math.MaxInt / 100, recovered: comeAgain + fast}
	return trouble{name: "full, all", bad: 10, begin: order("overload"), end: order("work"), everybody: true,
		learning: barsOf{b, b}, guarded: barsOf{b, b}}
}

// restarted are the bars for ten servers that leave gracefully and come back at once, where each may
// cost so many requests over HTTP, which finds out that nobody listens by trying. Over gRPC connections
// end with GOAWAY, and nothing is lost.
func restarted(each int) barsOf {
	return barsOf{http: bars{lost: 10 * each, recovered: fast}, grpc: bars{recovered: fast}}
}

// troublesOfStreams are those that matter to long answers.
func troublesOfStreams() []trouble {
	all := []trouble{}
	for _, tr := range troubles() {
		switch tr.name {
		case "killed", "stopped", "fails in 1 ms, three":
			tr.name += ", streams"
			tr.streams = 30
			tr.gap = 5 * silence
			for _, b := range []*bars{&tr.learning.http, &tr.learning.grpc, &tr.guarded.http, &tr.guarded.grpc} {
				b.returned = 0 // that is the same without streams
			}
			all = append(all, tr)
		}
	}
	return all
}

// badDeploy is three of ten servers that fail at once, where the others can do seven eighths of
// the work: nobody who sends each request once can have more than 87.5 %, or a little more while
// there is room in queues. A blind client sends three of ten requests to them and has 70 %. Only a client
// that limits what it has in flight can do better than that for long: without, queues grow until
// requests time out, and then those that are left look worse than those that fail at once.
//
// Servers whose work takes longer than it should, on a busy machine, can do less, and are measured.
func badDeploy(clients int, of contender) trouble {
	b := bars{ofPossible: 0.95, recovered: 5 * time.Second, blind: true}
	tr := trouble{name: fmt.Sprintf("bad deploy, clients: %d", clients), of: []contender{of}, thin: clients, bad: 3,
		begin: order("fail"), end: order("work")}
	switch {
	case clients >= 100:
		b.recovered = 15 * time.Second // each learns little in a second
	case clients > 1 || of.guarded:
		b.recovered = 10 * time.Second // twice the goal: see the package's comment
	}
	if of.guarded && clients > 1 {
		// Five failures in a row of one server take a client, which sends a tenth of its requests there,
		// this long on average, and nearly all of them half as long again.
		five := time.Duration(float64(5*10*clients) / deployRate * float64(time.Second))
		tr.learn = five * 3 / 2
		tr.length = tr.learn + 8*time.Second
		if clients >= 100 {
			b.ofPossible = 0.85 // not all of them know by then, and 0.81 is blind
		}
	}
	tr.learning, tr.guarded = barsOf{b, b}, barsOf{b, b}
	return tr
}

func order(what string) func(*testing.T, *server) {
	return func(t *testing.T, s *server) {
		t.Helper()
		s.tell(t, what)
	}
}

func signals(sig syscall.Signal) func(*testing.T, *server) {
	return func(t *testing.T, s *server) {
		t.Helper()
		s.signal(t, sig)
	}
}

func kill(_ *testing.T, s *server) { s.kill() }

// killAtWork kills a server that has requests under way.
func killAtWork(t *testing.T, s *server) {
	t.Helper()
	s.tell(t, gather.String()) // until then it keeps those that come
	waitUntil(t, patience, "a server has something to do", func() bool {
		requests, _ := s.held(t)
		return requests >= 3
	})
	s.kill()
}

func restart(t *testing.T, s *server) {
	t.Helper()
	s.restart(t)
}

// find tells all clients of the servers.
func (r *run) find(fleet []*server) {
	for _, c := range r.clients {
		c.find(fleet)
	}
}

// flap replaces the list twenty times a second by some of the servers in some order, and in the end
// by all.
func flap(ctx context.Context, _ *testing.T, r *run) {
	random := rand.New(rand.NewPCG(1, 1))
	for pass(ctx, 50*time.Millisecond) == nil {
		some := slices.Clone(r.fleet)
		random.Shuffle(len(some), func(i, k int) { some[i], some[k] = some[k], some[i] })
		r.find(some[:len(some)/2+random.IntN(len(some)/2+1)])
	}
	r.find(r.fleet)
}

// absence is how long servers are not in the list.
const absence = 200 * time.Millisecond

// leaveAndReturn takes three servers from the list, and puts them back, again and again.
func leaveAndReturn(ctx context.Context, _ *testing.T, r *run) {
	for pass(ctx, absence) == nil {
		r.find(r.fleet[3:])
		_ = pass(ctx, absence)
		r.find(r.fleet)
	}
}

// restartEach ends one server after the other gracefully and starts it anew.
func restartEach(_ context.Context, t *testing.T, r *run) {
	t.Helper()
	for _, s := range r.fleet {
		s.leave(t)
		s.restart(t)
		_ = pass(t.Context(), absence)
	}
}

// restartEachUnlisted does it while the list is without it.
func restartEachUnlisted(_ context.Context, t *testing.T, r *run) {
	t.Helper()
	for i, s := range r.fleet {
		r.find(slices.Delete(slices.Clone(r.fleet), i, i+1))
		_ = pass(t.Context(), absence)
		s.leave(t)
		s.restart(t)
		r.find(r.fleet)
	}
}
