package httpclient

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// sweptPolicy takes the first endpoint, and notes when it is swept.
type sweptPolicy struct {
	picker.Random
	mu sync.Mutex
	at map[string][]time.Time // by the first endpoint's ID
}

// Build implements picker.Policy.
func (p *sweptPolicy) Build(*picker.Members, picker.Picker) picker.Picker { return p }

// Pick implements picker.Picker.
func (p *sweptPolicy) Pick(s *picker.Snapshot, _ picker.Request, _ int64) int { return s.At(0) }

// Sweep implements picker.Sweeper.
func (p *sweptPolicy) Sweep(s *picker.Snapshot, _ int64) {
	if s.Len() == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	id := s.Record(s.At(0)).ID()
	p.at[id] = append(p.at[id], time.Now())
}

// since returns how long after start the target of an endpoint was swept.
func (p *sweptPolicy) since(id string, start time.Time) (after []time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range p.at[id] {
		if !at.Before(start) {
			after = append(after, at.Sub(start))
		}
	}
	return after
}

// hosts is a resolver that gives each target its host as the one address.
type hosts struct {
	mu    sync.Mutex
	sinks map[string]Sink
}

func (h *hosts) Watch(ctx context.Context, target Target, sink Sink) error {
	h.mu.Lock()
	h.sinks[target.Host] = sink
	h.mu.Unlock()
	_ = sink.Update(addrs(target.Host))
	<-ctx.Done()
	return ctx.Err()
}

func (h *hosts) sink(host string) Sink {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sinks[host]
}

// swept returns a Transport whose every target has one endpoint, that of its host.
func swept(t *testing.T) (*Transport, *sweptPolicy, *hosts) {
	p, r := &sweptPolicy{at: map[string][]time.Time{}}, &hosts{sinks: map[string]Sink{}}
	tr := stubbed(t, &Transport{Resolver: r, MaxTargets: 4 * newsAtOnce, Config: evenkeel.Config{Policy: p}}, stubAnswer)
	return tr, p, r
}

func TestSweepsComeOnceASecondAndSoonerAfterANewList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		tr, p, r := swept(t)
		ask := func(host string) { roundTrip(t, tr, request(t, http.MethodGet, "http://"+host+"/", nil)) }
		ask("a.test")
		time.Sleep(300 * ms)
		start := time.Now()
		ask("b.test") // has its first sweep a second later, though a round comes before
		time.Sleep(5*time.Second + 200*ms)
		want := []time.Duration{time.Second, 1700 * ms, 2700 * ms, 3700 * ms, 4700 * ms}
		if got := p.since("b.test:80", start); !slices.Equal(got, want) {
			t.Errorf("after the first list swept after %v, want %v", got, want)
		}

		start = time.Now() // half a second before a round
		if err := r.sink("a.test").Update(addrs("10.0.0.1")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		want = []time.Duration{0, 10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 500 * ms, 1000 * ms, 1500 * ms}
		if got := p.since("10.0.0.1:80", start); !slices.Equal(got, want) {
			t.Errorf("after a later list swept after %v, want %v", got, want)
		}
		want = []time.Duration{500 * ms, 1500 * ms}
		if got := p.since("b.test:80", start); !slices.Equal(got, want) {
			t.Errorf("the other target was swept after %v, want %v", got, want)
		}
		start = time.Now()
		tr.Close()
		time.Sleep(time.Minute)
		if got := p.since("b.test:80", start); len(got) != 0 {
			t.Errorf("swept after Close: %v", got)
		}
	})
}

// A first answer takes longer than others, as a connection is made for it. If that made
// those that nobody has tried look slow, they might never be.
func TestEveryEndpointIsTriedThoughFirstAnswersAreSlow(t *testing.T) {
	for _, n := range []int{2, 3, 5, 10} {
		synctest.Test(t, func(t *testing.T) {
			var list Static
			for i := range n {
				list = append(list, Address{Addr: fmt.Sprintf("10.0.0.%d", i)})
			}
			tried := map[string]bool{}
			tr := stubbed(t, &Transport{Resolver: list, rand: shared(rand.New(rand.NewPCG(1, uint64(n))))},
				func(addr string, req *http.Request) (*http.Response, error) {
					if !tried[addr] {
						time.Sleep(80 * time.Millisecond)
					}
					tried[addr] = true
					time.Sleep(20 * time.Millisecond)
					return stubAnswer(addr, req)
				})
			for range 20 * n {
				roundTrip(t, tr, request(t, http.MethodGet, svc, nil))
			}
			if len(tried) != n {
				t.Errorf("%d of %d endpoints were tried in %d requests", len(tried), n, 20*n)
			}
			tr.Close()
		})
	}
}

// More lists at once than the sweeper takes note of are found within a second.
func TestSweepsOfManyTargetsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3 * newsAtOnce
		tr, p, r := swept(t)
		for i := range n {
			roundTrip(t, tr, request(t, http.MethodGet, fmt.Sprintf("http://h%d.test/", i), nil))
		}
		time.Sleep(10 * time.Second)
		start := time.Now()
		for i := range n {
			if err := r.sink(fmt.Sprintf("h%d.test", i)).Update(addrs(fmt.Sprintf("10.0.0.%d", i))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10*time.Second + sweepEvery/2)
		for i := range n {
			if got := p.since(fmt.Sprintf("10.0.0.%d:80", i), start); len(got) < 10 || got[0] > sweepEvery {
				t.Errorf("target %d was swept after %v, want within a second and once a second", i, got)
			}
		}
		tr.Close()
	})
}

// A first list that came while the sweeper had its hands full.
func TestFirstListWithoutNoticeIsFoundByTheNextRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, p, _ := swept(t)
		roundTrip(t, tr, request(t, http.MethodGet, "http://a.test/", nil))
		f := tr.running()
		f.cancel()
		synctest.Wait() // its own sweeper has ended
		start := time.Now()
		s := sweeper{fleet: f, round: start, apart: map[*group]time.Time{}}
		for range 4 {
			next := s.sweep(time.Now())
			if wait := time.Until(next); wait != sweepEvery {
				t.Errorf("the next sweep is in %v, want %v", wait, sweepEvery)
			}
			time.Sleep(sweepEvery)
		}
		want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}
		if got := p.since("a.test:80", start); !slices.Equal(got, want) {
			t.Errorf("swept after %v, want %v", got, want)
		}
		tr.Close()
	})
}
