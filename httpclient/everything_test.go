package httpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// anyConfigs are Transports' configurations in which much happens within a second.
var anyConfigs = []evenkeel.Config{
	{},
	{Policy: picker.RoundRobin{}, Outlier: &outlier.Config{Soft: outlier.SoftConfig{ConsecutiveFailures: 2, ProbeBackoff: time.Millisecond,
		MaxProbeBackoff: 2 * time.Millisecond}}},
	{Policy: picker.Hash{}, Outlier: &outlier.Config{Mode: outlier.Envoy, Interval: 10 * time.Millisecond, BaseEjectionTime: 5 * time.Millisecond,
		MaxEjectionPercent: outlier.PercentOf(60)}, Limit: evenkeel.LimitConfig{Floor: 1, Ceiling: 8}},
	{Policy: picker.P2C{}, Subset: &subset.Config{Size: 3, Seed: 5}, Outlier: &outlier.Config{Panic: outlier.Panic{FailFast: true}}},
}

// A Transport with everything at once: requests that succeed, fail, hang until their time is over, are cancelled, are
// streams or have bodies of which some is read; lists of any order with weights; idle connections closed; pictures taken; and Close
// from several sides at the end. Nothing is in flight at rest, every body was closed, and nobody hangs. Run with -race.
func TestEverythingAtOnceOverATransport(t *testing.T) {
	for i, config := range anyConfigs {
		ways := &everyWay{t: t}
		list := &script{first: addrs("10.0.0.1", "10.0.0.2", "10.0.0.3"), started: make(chan struct{}, 1)}
		tr := &Transport{Resolver: list, Config: config}
		stubbed(t, tr, ways.answer)
		watchdog := time.AfterFunc(time.Minute, func() {
			buf := make([]byte, 4<<20)
			panic(fmt.Sprintf("somebody waits for ever:\n%s", buf[:runtime.Stack(buf, true)]))
		})
		roundTripAny(ways, tr, rand.New(rand.NewPCG(uint64(i), 1)))
		<-list.started
		var users, others sync.WaitGroup
		for u := range uint64(16) {
			users.Go(func() {
				r := rand.New(rand.NewPCG(u, 2))
				for !ways.over.Load() {
					roundTripAny(ways, tr, r)
				}
			})
		}
		others.Go(func() { ways.change(tr, list.sink(), rand.New(rand.NewPCG(3, 3))) })
		end := time.NewTimer(400 * time.Millisecond)
		<-end.C
		ways.over.Store(true)
		users.Wait()
		others.Wait()
		if err := list.sink().Update(addrs("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.7", "10.0.0.8")); err != nil {
			t.Error(err) // all that ever were
		}
		if n := inFlight(tr); n != 0 {
			t.Errorf("configuration %d: %d in flight at rest", i, n)
		}
		ways.over.Store(false)
		ways.closing.Store(true)
		for u := range uint64(4) {
			users.Go(func() {
				r := rand.New(rand.NewPCG(u, 4))
				for range 50 {
					roundTripAny(ways, tr, r)
				}
			})
			others.Go(tr.Close)
		}
		users.Wait()
		others.Wait()
		if n := ways.bodies.Load(); n != 0 {
			t.Errorf("configuration %d: %d bodies are open", i, n)
		}
		if ways.served.Load() == 0 {
			t.Errorf("configuration %d: nothing was served", i)
		}
		watchdog.Stop()
	}
}

// everyWay is what all sides share.
type everyWay struct {
	t       *testing.T
	over    atomic.Bool
	closing atomic.Bool
	bodies  atomic.Int64 // of answers and requests, open
	served  atomic.Int64
}

// counted is a body that counts as open until it is closed.
type counted struct {
	io.Reader
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *counted) Close() error {
	if !c.closed.Swap(true) {
		c.open.Add(-1)
	}
	return nil
}

func (w *everyWay) body(text string, err error) *counted {
	w.bodies.Add(1)
	r := io.Reader(strings.NewReader(text))
	if err != nil {
		r = io.MultiReader(r, errorReader{err})
	}
	return &counted{Reader: r, open: &w.bodies}
}

type errorReader struct{ err error }

func (e errorReader) Read([]byte) (int, error) { return 0, e.err }

// answer is a server of any mood.
func (w *everyWay) answer(addr string, req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		req.Body.Close()
	}
	mood := rand.IntN(12)
	if addr == "10.0.0.1:80" {
		mood = rand.IntN(6) // worse than the others
	}
	switch mood {
	case 0:
		return nil, &unreachedError{io.EOF}
	case 1:
		return nil, io.ErrUnexpectedEOF
	case 2:
		if _, ok := req.Context().Deadline(); ok {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}
	}
	w.served.Add(1)
	status := []int{200, 200, 200, 404, 429, 500, 503, 200, 200, 200, 200, 200}[mood]
	resp := answer(req, status, "")
	var broken error
	if mood == 3 {
		broken = io.ErrUnexpectedEOF
	}
	resp.Body, resp.ContentLength = w.body("hello", broken), -1
	if status == 503 {
		resp.Header.Set("Retry-After", "0")
	}
	return resp, nil
}

// roundTripAny sends one request of any kind, and ends it in any way.
func roundTripAny(w *everyWay, tr *Transport, r *rand.Rand) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if r.IntN(2) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(4000))*time.Microsecond)
		defer cancel()
	}
	if r.IntN(10) == 0 {
		cancel()
	}
	var body io.Reader
	if r.IntN(3) == 0 {
		body = w.body("question", nil)
	}
	req, err := http.NewRequestWithContext(evenkeel.WithKey(ctx, fmt.Sprint(r.IntN(20))), []string{"GET", "POST"}[r.IntN(2)], svc, body)
	if err != nil {
		w.t.Error(err)
		return
	}
	if r.IntN(5) == 0 {
		req.Header.Set("Accept", "text/event-stream")
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		if errors.Is(err, ErrClosed) && !w.closing.Load() {
			w.t.Error(err)
		}
		return
	}
	defer resp.Body.Close()
	switch r.IntN(4) {
	case 0:
		cancel()
	case 1:
		_, _ = io.ReadFull(resp.Body, make([]byte, 2))
	case 2:
		_, _ = io.ReadAll(resp.Body)
	}
}

// change hands over lists, takes pictures and closes what is idle, all the time.
func (w *everyWay) change(tr *Transport, sink Sink, r *rand.Rand) {
	for !w.over.Load() {
		var list []Address
		for i := range 8 {
			if r.IntN(4) > 0 || i == 0 {
				list = append(list, Address{Addr: fmt.Sprintf("10.0.0.%d", i+1)})
				if r.IntN(3) == 0 {
					list[len(list)-1].Weight = evenkeel.WeightOf(float64(r.IntN(4)))
				}
			}
		}
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		if r.IntN(10) == 0 {
			list = nil
		}
		if err := sink.Update(list); err != nil {
			w.t.Error(err)
		}
		if sink.Update(addrs("10.0.0.1", "10.0.0.1")) == nil {
			w.t.Error("a list with a double is accepted")
		}
		if r.IntN(4) == 0 {
			tr.CloseIdleConnections()
		}
		for _, target := range tr.Snapshot() {
			for _, e := range target.Endpoints {
				if e.InFlight < 0 || e.Leaked != 0 || !(e.Success >= 0 && e.Success <= 1) {
					w.t.Errorf("%+v", e)
				}
			}
		}
		runtime.Gosched()
	}
}
