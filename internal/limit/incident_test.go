package limit

import (
	"container/heap"
	"math/rand/v2"
	"testing"
)

const (
	ms  = int64(1e6)
	sec = int64(1e9)
)

// incident replays the fleet of a known outage: ten hosts that serve one request at a time
// in exponential 10 ms, 80 % load, callers that wait for one second; work whose caller
// has gone still costs its host. From 20 s to 40 s some hosts are out, and known to be:
// the rest has less capacity than there is load.
type incident struct {
	clients int
	load    float64 // of all ten hosts
	out     int     // hosts that are out from 20 s to 40 s
	hung    float64 // share of requests that never end, whoever serves them
	limited bool
	seconds int
	seed    uint64
}

// perSecond is what became of the requests that began in each second.
type perSecond struct{ sent, good []float64 }

// share returns the share of good requests among those begun in seconds from to to-1.
func (p perSecond) share(from, to int) float64 {
	sent, good := 0.0, 0.0
	for i := from; i < to; i++ {
		sent, good = sent+p.sent[i], good+p.good[i]
	}
	return good / sent
}

type event struct {
	at     int64
	client int
	host   int // -1: an arrival, -2: a sweep
	began  int64
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

type simClient struct {
	limiter *Limiter
	open    []int // in flight, by host
	total   int
}

func (c incident) run(t *testing.T) perSecond {
	t.Helper()
	r := rand.New(rand.NewPCG(c.seed, 4))
	clients := make([]simClient, c.clients)
	var queue events
	for i := range clients {
		l, err := New(Config{Disabled: !c.limited})
		if err != nil {
			t.Fatal(err)
		}
		clients[i] = simClient{limiter: l, open: make([]int, 10)}
		heap.Push(&queue, event{at: r.Int64N(sec), client: i, host: -2})
	}
	out := perSecond{make([]float64, c.seconds+1), make([]float64, c.seconds+1)}
	var free [10]int64
	rate := 1000 * c.load
	heap.Push(&queue, event{host: -1})
	for queue[0].at < int64(c.seconds)*sec {
		e := heap.Pop(&queue).(event)
		switch e.host {
		case -1:
			heap.Push(&queue, event{at: e.at + int64(r.ExpFloat64()/rate*1e9), host: -1})
			c.arrive(e.at, r, clients, &free, out, &queue)
		case -2:
			cl := &clients[e.client]
			if next := cl.limiter.Sweep(e.at, int64(cl.total)); c.limited {
				heap.Push(&queue, event{at: next, client: e.client, host: -2})
			}
		default:
			cl := &clients[e.client]
			cl.open[e.host]--
			cl.total--
			cl.limiter.Release()
			kind := Answered
			if e.at-e.began >= sec {
				kind = TimedOut
			} else {
				out.good[e.began/sec]++
			}
			cl.limiter.Observe(kind, e.at-e.began, sec)
		}
	}
	return out
}

// arrive begins one request, of any client.
func (c incident) arrive(now int64, r *rand.Rand, clients []simClient, free *[10]int64, out perSecond, queue *events) {
	out.sent[now/sec]++
	i := r.IntN(len(clients))
	cl := &clients[i]
	if !cl.limiter.Acquire() {
		return
	}
	hosts := 10
	if now >= 20*sec && now < 40*sec {
		hosts -= c.out
	}
	h := r.IntN(hosts)
	if o := r.IntN(hosts); cl.open[o] < cl.open[h] {
		h = o
	}
	cl.open[h]++
	cl.total++
	end := now + sec
	if r.Float64() >= c.hung {
		free[h] = max(free[h], now) + int64(r.ExpFloat64()*1e7)
		end = min(end, free[h])
	}
	heap.Push(queue, event{at: end, client: i, host: h, began: now})
}

// mean returns the share of good requests from second from to to-1, over some seeds.
func (c incident) mean(t *testing.T, from, to int) (m float64) {
	t.Helper()
	const seeds = 2
	for c.seed = range uint64(seeds) {
		m += c.run(t).share(from, to) / seeds
	}
	return m
}

// The bars are those of the whole product; what is missing here of it (soft ejection, errors
// scored as slow) would help.
func TestIncidentIsAsBadAsTheLostCapacityAndOverWithIt(t *testing.T) {
	for _, clients := range []int{1, 20, 100} {
		c := incident{clients: clients, load: 0.8, out: 3, limited: true, seconds: 60}
		during, after := c.mean(t, 20, 40), c.mean(t, 45, 58)
		t.Logf("%d clients: %.3f during, %.4f after 5 s", clients, during, after)
		if bar := 0.95 * 0.7 / 0.8; during < bar {
			t.Errorf("%d clients: %.3f during the incident, want at least %.3f", clients, during, bar)
		}
		if after < 0.99 {
			t.Errorf("%d clients: %.4f from 5 s after it, want 0.99", clients, after)
		}
		c.limited = false
		if without := c.mean(t, 20, 40); without > 0.5 {
			t.Errorf("%d clients: %.3f without a limit: the test shows nothing", clients, without)
		}
	}
}

func TestOverloadIsServedAtCapacity(t *testing.T) {
	for _, clients := range []int{1, 20, 100} {
		got := incident{clients: clients, load: 1.5, limited: true, seconds: 40}.mean(t, 10, 38)
		t.Logf("%d clients: %.3f", clients, got)
		if bar := 0.9 / 1.5; got < bar {
			t.Errorf("%d clients at load 1.5: %.3f, want at least %.3f", clients, got, bar)
		}
	}
}

// A kind of request that hangs, whoever gets it, is no queue: the others must not pay.
func TestRequestsThatHangDoNotLimitTheOthers(t *testing.T) {
	for _, clients := range []int{1, 20, 100} {
		c := incident{clients: clients, load: 0.6, hung: 0.1, limited: true, seconds: 40}
		got := c.mean(t, 5, 38)
		t.Logf("%d clients: %.3f", clients, got)
		if got < 0.9-0.03 {
			t.Errorf("%d clients: %.3f, want nearly 0.9 as without a limit", clients, got)
		}
	}
}

func TestHealthyFleetIsNotLimitedAtHighLoad(t *testing.T) {
	for _, clients := range []int{1, 20, 100} {
		for _, load := range []float64{0.8, 0.95} {
			got := incident{clients: clients, load: load, limited: true, seconds: 40}.mean(t, 0, 38)
			if got != 1 {
				t.Errorf("%d clients at load %v: %.5f, want all", clients, load, got)
			}
		}
	}
}
