package httpclient

import (
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// tally is the leaves of a Transport, and what they saw.
type tally struct {
	mu     sync.Mutex
	sent   map[string]uint64 // requests by address, over all leaves that it had
	made   map[string]int    // leaves by address
	open   atomic.Int64      // leaves that have not been told to close
	leaked atomic.Int64      // answers whose body is open
}

// tallied is one leaf.
type tallied struct {
	t      *tally
	addr   string
	closed atomic.Bool
}

func (l *tallied) RoundTrip(req *http.Request) (*http.Response, error) {
	l.t.mu.Lock()
	l.t.sent[l.addr]++
	n := l.t.sent[l.addr]
	l.t.mu.Unlock()
	switch n % 10 {
	case 3:
		return answer(req, 500, "broken"), nil
	case 7:
		return nil, &unreachedError{io.EOF}
	}
	l.t.leaked.Add(1)
	resp := answer(req, 200, "hello")
	resp.Body = closing{resp.Body, func() { l.t.leaked.Add(-1) }}
	return resp, nil
}

func (l *tallied) CloseIdleConnections() {
	if l.closed.CompareAndSwap(false, true) {
		l.t.open.Add(-1)
	}
}

// least is how many requests the one of a list got that got the fewest.
func (a *tally) least(list []Address) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	fewest := a.sent[list[0].Addr+":80"]
	for _, b := range list {
		fewest = min(fewest, a.sent[b.Addr+":80"])
	}
	return fewest
}

type closing struct {
	io.ReadCloser
	closed func()
}

func (c closing) Close() error { c.closed(); return c.ReadCloser.Close() }

func (a *tally) leaf(_ Target, addr string) leaf {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.made[addr]++
	a.open.Add(1)
	return &tallied{t: a, addr: addr}
}

// randomList changes a list by one random step: adds, removes, reorders, reweights.
func randomList(r *rand.Rand, list []Address) []Address {
	list = slices.Clone(list)
	switch r.IntN(4) {
	case 0:
		a := fmt.Sprintf("10.0.1.%d", r.IntN(20))
		if !slices.ContainsFunc(list, func(b Address) bool { return b.Addr == a }) {
			list = append(list, Address{Addr: a})
		}
	case 1:
		if i := r.IntN(len(list)); !strings.HasPrefix(list[i].Addr, "10.0.0.") { // those stay
			list = slices.Delete(list, i, i+1)
		}
	case 2:
		r.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	case 3:
		list[r.IntN(len(list))].Weight = evenkeel.WeightOf(float64(1 + r.IntN(5)))
	}
	return list
}

// known is what is known of an endpoint that an update must not touch.
type known struct {
	picks    uint64
	inFlight int64
	latency  time.Duration
	success  float64
}

func knownAt(g *group, at time.Time) map[string]known {
	all := map[string]known{}
	for _, e := range g.pool.StatsAt(at).Endpoints {
		all[e.ID] = known{e.Picks, e.InFlight, e.Latency, e.Success}
	}
	return all
}

func TestRecordsSurviveThousandRandomUpdatesUnderLoad(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	r := &script{first: addrs("10.0.0.1", "10.0.0.2", "10.0.0.3"), started: make(chan struct{}, 1)}
	counts := &tally{sent: map[string]uint64{}, made: map[string]int{}}
	tr := &Transport{Resolver: r, newLeaf: counts.leaf}
	roundTripAll(t, tr)
	<-r.started
	// A sweep may change what is known at an instant, by what it finds out about the pool.
	tr.running().cancel()
	// gate stands still what the senders do to the pool while one update in two is
	// compared; their open answers stay open. The others race with the senders.
	var gate sync.RWMutex
	stop := make(chan struct{})
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() { send(t, tr, &gate, stop) })
	}
	random := rand.New(rand.NewPCG(1, 2))
	list := r.first
	for i := 0; i < 1000 || i < 100_000 && counts.least(r.first) < 200; i++ {
		next := randomList(random, list)
		if i%2 == 0 {
			gate.Lock()
			updateKeepsRecords(t, tr, r.sink(), next)
			gate.Unlock()
		} else if err := r.sink().Update(next); err != nil {
			t.Fatal(err)
		}
		list = next
	}
	close(stop)
	senders.Wait()
	checkTally(t, one(t, tr), counts)
	// Those of an endpoint that left close when its last request has ended.
	eventually(t, "only the list's endpoints have connections", func() bool { return counts.open.Load() == int64(len(list)) })
	tr.Close()
	if counts.open.Load() != 0 || counts.leaked.Load() != 0 {
		t.Errorf("%d sets of connections and %d bodies are open after Close", counts.open.Load(), counts.leaked.Load())
	}
	goleak.VerifyNone(t, ignore)
}

func onlyGroup(tr *Transport) *group {
	return slices.Collect(maps.Values(*tr.running().groups.Load()))[0]
}

// updateKeepsRecords updates to next, and wants all that is known of those that stay to be
// the same as before.
func updateKeepsRecords(t *testing.T, tr *Transport, sink Sink, next []Address) {
	t.Helper()
	g := onlyGroup(tr)
	now := time.Now()
	before := knownAt(g, now)
	if err := sink.Update(next); err != nil {
		t.Fatal(err)
	}
	for id, k := range knownAt(g, now) {
		if was, stayed := before[id]; stayed && was != k {
			t.Fatalf("an update changed %s from %+v to %+v", id, was, k)
		}
	}
}

// checkTally compares what is known at rest with what the endpoints saw.
func checkTally(t *testing.T, s TargetStats, counts *tally) {
	t.Helper()
	for _, e := range s.Endpoints {
		addr := e.ID
		if e.InFlight != 0 || e.Picks != counts.sent[addr] {
			t.Errorf("%s: %d in flight at rest, %d picks of %d requests", addr, e.InFlight, e.Picks, counts.sent[addr])
		}
		if !strings.HasPrefix(addr, "10.0.0.") {
			continue
		}
		if counts.made[addr] != 1 {
			t.Errorf("%s stayed and was given %d sets of connections", addr, counts.made[addr])
		}
		if e.Picks < 100 || e.Latency <= 0 || e.Success >= 1 {
			t.Errorf("%s: %d picks, latency %v, success %v: too little happened for this test to say anything", addr, e.Picks, e.Latency, e.Success)
		}
	}
}

// send keeps up to four answers open until stop.
func send(t *testing.T, tr *Transport, gate *sync.RWMutex, stop chan struct{}) {
	var open []*http.Response
	end := func(resp *http.Response) {
		gate.RLock()
		defer gate.RUnlock()
		_, _ = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	for {
		select {
		case <-stop:
			for _, resp := range open {
				end(resp)
			}
			return
		default:
		}
		req := request(t, "GET", svc, nil)
		gate.RLock()
		resp, err := tr.RoundTrip(req)
		gate.RUnlock()
		if err == nil {
			open = append(open, resp)
		}
		if len(open) == 4 {
			end(open[0])
			open = open[1:]
		}
	}
}

// With one of ten gone, a rotation that skips the hole would give its neighbour twice
// its share.
func TestSharesOfSurvivorsAreEqualWhenOneOfTenIsGone(t *testing.T) {
	const n, share = 9000, 1.0 / 9
	chance := 4 * math.Sqrt(n*share*(1-share)) // four standard deviations of the binomial
	for _, c := range []struct {
		policy evenkeel.Policy
		within float64
	}{
		{picker.RoundRobin{}, 1},
		{picker.WeightedRoundRobin{}, 2},
		{picker.SmoothWeightedRoundRobin{}, 1},
		{picker.EDF{}, 2},
		{picker.Random{}, chance},
		{picker.WeightedRandom{}, chance},
		{picker.P2C{Signal: picker.InFlight}, chance},
		{picker.P2C{Signal: picker.Latency}, chance},
	} {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 4))
			r := &script{}
			for i := range 10 {
				r.first = append(r.first, Address{Addr: fmt.Sprintf("10.0.0.%d", i)})
			}
			tr := stubbed(t, &Transport{Resolver: r, Config: evenkeel.Config{Policy: c.policy}, rand: random.Uint64}, func(_ string, req *http.Request) (*http.Response, error) {
				time.Sleep(time.Millisecond) // the same for all
				return answer(req, 200, "x"), nil
			})
			for range 100 {
				roundTripAll(t, tr)
			}
			if err := r.sink().Update(slices.Delete(slices.Clone(r.first), 4, 5)); err != nil {
				t.Fatal(err)
			}
			before := map[string]uint64{}
			for _, e := range one(t, tr).Endpoints {
				before[e.ID] = e.Picks
			}
			for range n {
				roundTripAll(t, tr)
			}
			for _, e := range one(t, tr).Endpoints {
				if got := float64(e.Picks - before[e.ID]); math.Abs(got-n*share) > c.within {
					t.Errorf("%T: %s got %v of %d, want %v ± %v", c.policy, e.ID, got, n, n*share, c.within)
				}
			}
			tr.Close()
		})
	}
}
