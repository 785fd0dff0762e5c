//go:build unix

package chaos

import (
	"context"
	"fmt"
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
	// What a failure costs fades with a time constant of 10 s, and stops mattering at a tenth of a
	// doubling: seven failures in a row take 35 s to get there.
	const again = 40 * time.Second
	// Requests that fail at once teach by one step each.
	failing := bars{lost: 7, worst: 0.03, recovered: fast, returned: again, blind: true}
	// Those that hang teach by their age. What they teach of latency fades within minutes: while
	// others can do the work, there is no bar for the return that could be met here.
	hanging := bars{lost: 5, worst: 0.03, recovered: fast, blind: true}
	// What is on connections that break is lost, and gRPC asks nobody without a connection.
	unconnected := bars{lost: 4, worst: 0.01, recovered: fast, returned: again}
	// Nothing fails, and most of the harm that a blind client has is avoided. For the return, see
	// those that hang.
	slower := bars{worst: 0.04, recovered: fast, faster: 0.8}
	nobody := bars{recovered: fast}

	stop, cont := signals(syscall.SIGSTOP), signals(syscall.SIGCONT)
	working := order("work")
	all := []trouble{
		{name: "none", http: nobody, grpc: nobody},
		{name: "killed", bad: 1, begin: kill, end: restart, http: failing, grpc: unconnected},
		{name: "killed, three", bad: 3, begin: kill, end: restart, http: failing, grpc: unconnected},
		{name: "stopped", bad: 1, begin: stop, end: cont, http: hanging, grpc: hanging},
		{name: "stopped, three", bad: 3, begin: stop, end: cont, http: hanging, grpc: hanging},
		{name: "refuses", bad: 1, begin: order("refuse"), end: order("open"), http: failing, grpc: unconnected},
		{name: "accepts, says nothing", bad: 1, begin: order("mute"), end: order("open"), http: hanging, grpc: unconnected},
		{name: "hangs", bad: 1, begin: order("hang"), end: working, http: hanging, grpc: hanging},
		{name: "resets half-way", bad: 1, begin: order("reset"), end: working, http: failing, grpc: failing},
		{name: "ten times slower", bad: 1, begin: order("slow"), end: working, http: slower, grpc: slower},
		{name: "ten times slower, three", bad: 3, begin: order("slow"), end: working, http: slower, grpc: slower},
		{name: "fails in 1 ms", bad: 1, begin: order("fail"), end: working, http: failing, grpc: failing},
		{name: "fails in 1 ms, three", bad: 3, begin: order("fail"), end: working, http: failing, grpc: failing},
		{name: "full", bad: 1, begin: order("overload"), end: working, http: failing, grpc: failing},
		{name: "list flaps", meanwhile: flap, http: nobody, grpc: nobody},
	}
	for i := range all {
		all[i].of = append(slices.Clone(contenders), reference)
	}
	return all
}

// badDeploy is three of ten servers that fail at once, where the others can do seven eighths of
// the work: nobody who sends each request once can have more than 87.5 %, or a little more while
// there is room in queues. A blind client sends three of ten requests to them and has 70 %.
//
// The reference suffers it by itself, since it would take a part of what the servers can do.
func badDeploy(clients int, of ...contender) trouble {
	b := bars{
		// Only a client that limits what it has in flight can hold this. Without, queues grow until
		// requests time out, and then those that are left look worse than those that fail at once.
		limited: 0.95 * 0.875,
		success: 0.4, recovered: 15 * time.Second, blind: true,
	}
	name := fmt.Sprintf("bad deploy, %d clients", clients)
	return trouble{name: name, of: of, thin: clients, bad: 3, begin: order("fail"), end: order("work"), http: b, grpc: b}
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

func restart(t *testing.T, s *server) {
	t.Helper()
	s.restart(t)
}

// flap replaces the list twenty times a second by some of the servers in some order, and in the end
// by all.
func flap(ctx context.Context, fleet []*server, clients []*client) {
	random := rand.New(rand.NewPCG(1, 1))
	for pass(ctx, 50*time.Millisecond) == nil {
		some := slices.Clone(fleet)
		random.Shuffle(len(some), func(i, k int) { some[i], some[k] = some[k], some[i] })
		some = some[:len(fleet)/2+random.IntN(len(fleet)/2+1)]
		for _, c := range clients {
			c.find(some)
		}
	}
	for _, c := range clients {
		c.find(fleet)
	}
}
