package probe

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/health"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a prober without a network.
type fake struct {
	mu      sync.Mutex
	start   time.Time
	takes   time.Duration            // each check
	results map[string]health.Result // Passed where there is none
	hangs   map[string]bool          // until the context is done
	calls   map[string][]time.Duration
	running int
	most    int // at a time
	left    []string
	closed  int
}

func newFake() *fake {
	return &fake{start: time.Now(), results: map[string]health.Result{}, hangs: map[string]bool{}, calls: map[string][]time.Duration{}}
}

func (f *fake) Probe(ctx context.Context, addr string) (health.Result, string) {
	f.mu.Lock()
	f.calls[addr] = append(f.calls[addr], time.Since(f.start))
	f.running++
	f.most = max(f.most, f.running)
	takes, hangs := f.takes, f.hangs[addr]
	f.mu.Unlock()
	if hangs {
		<-ctx.Done()
	} else if takes > 0 {
		timer := time.NewTimer(takes)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running--
	if ctx.Err() != nil {
		return health.Passed, "a prober that is wrong"
	}
	return f.results[addr], fmt.Sprintf("%s says %d", addr, f.results[addr])
}

func (f *fake) Left(addr string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = append(f.left, addr)
}

func (f *fake) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
}

func (f *fake) set(addr string, r health.Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.results[addr] = r
}

func (f *fake) hang(addr string, yes bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hangs[addr] = yes
}

func (f *fake) closes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

func (f *fake) runs() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running
}

func (f *fake) atOnce() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.most
}

func (f *fake) gone() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.left)
}

// begun returns when the checks of addr began.
func (f *fake) begun(addr string) []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls[addr])
}

// bench is a Runner in a bubble, with what it said.
type bench struct {
	*Runner
	prober *fake
	mu     sync.Mutex
	said   []string // "id:state"
	states map[string]evenkeel.State
}

func newBench(t *testing.T, c evenkeel.HealthConfig) *bench {
	t.Helper()
	b := &bench{prober: newFake(), states: map[string]evenkeel.State{}}
	r := rand.New(rand.NewPCG(1, 2))
	var err error
	b.Runner, err = NewRunner(Options{Config: c, Prober: b.prober, Out: b.hear, Rand: r.Uint64})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) hear(list []evenkeel.StateChange) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range list {
		if c.Source != evenkeel.Checks {
			b.said = append(b.said, "from "+c.Source.String())
		}
		b.said = append(b.said, c.ID+":"+c.State.String())
		b.states[c.ID] = c.State
	}
}

// news returns what was said since the last call, sorted within itself.
func (b *bench) news() string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	said := b.said
	b.said = nil
	slices.Sort(said)
	return strings.Join(said, " ")
}

func (b *bench) expect(t *testing.T, when, want string) {
	t.Helper()
	if got := b.news(); got != want {
		t.Errorf("%s: said %q, want %q", when, got, want)
	}
}

// endpoints whose addresses are their IDs.
func endpoints(ids ...string) []Endpoint {
	list := make([]Endpoint, len(ids))
	for i, id := range ids {
		list[i] = Endpoint{ID: id, Addr: id}
	}
	return list
}

func many(n int) []Endpoint {
	list := make([]Endpoint, n)
	for i := range list {
		list[i].ID = fmt.Sprintf("e%d", i)
		list[i].Addr = list[i].ID
	}
	return list
}

// steady is a configuration without jitter that takes no account of requests.
var steady = evenkeel.HealthConfig{Interval: time.Second, Timeout: 500 * time.Millisecond, Jitter: evenkeel.NoJitter, NoTraffic: time.Second}
