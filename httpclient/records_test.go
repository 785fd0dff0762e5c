package httpclient

import (
	"fmt"
	"io"
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
		return nil, &dialError{io.EOF}
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
	// gate stands still what the senders do to the pool while one update in two is
	// compared; their open answers stay open. The others race with the senders.
	var gate sync.RWMutex
	stop := make(chan struct{})
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() { send(t, tr, &gate, stop) })
	}
	<-r.started
	var g *group
	eventually(t, "there is a target", func() bool {
		if f := tr.running(); f != nil {
			for _, g = range *f.groups.Load() {
				return true
			}
		}
		return false
	})
	random := rand.New(rand.NewPCG(1, 2))
	list := r.first
	for i := range 1000 {
		next := randomList(random, list)
		if i%2 == 0 {
			gate.Lock()
			now := time.Now()
			before := knownAt(g, now)
			if err := r.sink().Update(next); err != nil {
				t.Fatal(err)
			}
			after := knownAt(g, now)
			for id, k := range after {
				if was, stayed := before[id]; stayed && was != k {
					t.Fatalf("update %d changed %s from %+v to %+v", i, id, was, k)
				}
			}
			gate.Unlock()
		} else if err := r.sink().Update(next); err != nil {
			t.Fatal(err)
		}
		list = next
	}
	close(stop)
	senders.Wait()
	for _, e := range one(t, tr).Endpoints {
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
	if n := counts.open.Load(); n != int64(len(list)) {
		t.Errorf("%d sets of connections are open, want those of the %d endpoints", n, len(list))
	}
	tr.Close()
	if counts.open.Load() != 0 || counts.leaked.Load() != 0 {
		t.Errorf("%d sets of connections and %d bodies are open after Close", counts.open.Load(), counts.leaked.Load())
	}
	goleak.VerifyNone(t, ignore)
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
	for _, p := range []evenkeel.Policy{picker.RoundRobin{}, picker.Random{}, picker.P2C{Signal: picker.InFlight}, picker.P2C{Signal: picker.Latency}} {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 4))
			r := &script{}
			for i := range 10 {
				r.first = append(r.first, Address{Addr: fmt.Sprintf("10.0.0.%d", i)})
			}
			tr := stubbed(t, &Transport{Resolver: r, Config: evenkeel.Config{Policy: p}, rand: random.Uint64}, func(_ string, req *http.Request) (*http.Response, error) {
				time.Sleep(time.Millisecond) // the same for all
				return answer(req, 200, "x"), nil
			})
			const n, share = 9000, 1.0 / 9
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
			bound := 4 * 29.8 // standard deviations of the binomial with n and share
			for _, e := range one(t, tr).Endpoints {
				if got := float64(e.Picks - before[e.ID]); got < n*share-bound || got > n*share+bound {
					t.Errorf("%+v: %s got %v of %d, want %v ± %v", p, e.ID, got, n, n*share, bound)
				}
			}
			tr.Close()
		})
	}
}
