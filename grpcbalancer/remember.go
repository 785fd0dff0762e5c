package grpcbalancer

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/evenkeel/evenkeel"
)

const (
	// longestMemory is far beyond what is worth knowing of an endpoint.
	longestMemory = 24 * time.Hour
	// maxKept bounds how many pools are kept.
	maxKept = 64
)

// Remember has what policies learn outlast them for d from now on, 0 to 24 h; what is beyond that is cut to it.
// 0, which is how a process begins, remembers nothing, and drops what is remembered.
//
// gRPC closes a channel's policy when the channel has been idle for 30 minutes (grpc.WithIdleTimeout), when it
// is closed, and when its service config names another policy. The next policy of the same name for the same target
// then takes up what the last one knew of the endpoints: latencies, failures, ejections, and the streams that are still in
// flight. Connections are made anew. Channels that are open at the same time share what they know only if [Share] says so; of
// those that are closed the last one counts. With a "subset" nothing is kept: all of its part, which is not connected any more, would look
// lost, and be topped up. At most 64 targets are remembered; beyond them the oldest is forgotten.
//
// It is safe for concurrent use, costs no goroutine, and no pick anything.
func Remember(d time.Duration) { memories.remember(min(max(d, 0), longestMemory)) }

// memories are those of the process.
var memories memory

// memory has the pools of policies that are closed.
type memory struct {
	mu   sync.Mutex
	span time.Duration // 0: nothing is kept
	kept map[memoryKey]*keepsake
}

type memoryKey struct{ policy, target string }

// keepsake is a pool, and while nobody uses it when it came and goes.
type keepsake struct {
	pool *evenkeel.Pool[*endpoint]
	tell *atomic.Pointer[warnings] // who is told of the pool's warnings, nil for nobody
	// What was counted of the pool's refusals.
	refused *refusals
	common  *common // that the pool is a branch of; nil: of none

	at     time.Time
	expiry *time.Timer
}

func newKeepsake(c evenkeel.Config, random func() uint64) (*keepsake, error) {
	k := &keepsake{tell: new(atomic.Pointer[warnings]), refused: new(refusals)}
	tell := k.tell
	var err error
	k.pool, err = evenkeel.NewPool[*endpoint](c, evenkeel.Options{Rand: random, OnWarning: func(text string) {
		if w := tell.Load(); w != nil {
			w.addOnce(text)
		}
	}})
	return k, err
}

func (m *memory) remember(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.span = d; d == 0 {
		for key := range m.kept {
			m.drop(key)
		}
	}
}

// keeps reports whether anything is kept.
func (m *memory) keeps() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.span > 0
}

// keep takes a pool whose policy is closed, or closes it.
func (m *memory) keep(key memoryKey, k *keepsake) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.span == 0 || key.target == "" {
		k.pool.Close()
		return
	}
	m.drop(key)
	if len(m.kept) >= maxKept {
		m.drop(m.oldest())
	}
	if m.kept == nil {
		m.kept = map[memoryKey]*keepsake{}
	}
	m.kept[key] = k
	k.at = time.Now()
	k.expiry = time.AfterFunc(m.span, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.kept[key] == k {
			m.drop(key)
		}
	})
}

// take returns what is remembered, nil if nothing is; it is the caller's then.
func (m *memory) take(key memoryKey) *keepsake {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.kept[key]
	if k != nil {
		k.expiry.Stop()
		delete(m.kept, key)
	}
	return k
}

// drop forgets a target. Called under mu.
func (m *memory) drop(key memoryKey) {
	if k := m.kept[key]; k != nil {
		k.expiry.Stop()
		k.pool.Close()
		delete(m.kept, key)
	}
}

// oldest is the target that was left first. Called under mu.
func (m *memory) oldest() (key memoryKey) {
	for k := range m.kept {
		if key == (memoryKey{}) || m.kept[k].at.Before(m.kept[key].at) {
			key = k
		}
	}
	return key
}

// recall returns the pool to begin with: what others share, what the target's last policy left, or a new one. Called
// under calls.
func (p *policy) recall(c evenkeel.Config, next []keyed) (*keepsake, error) {
	key := memoryKey{p.name, p.target()}
	if c.Subset != nil {
		return newKeepsake(c, p.random)
	}
	found := func() (*keepsake, error) {
		if k := memories.take(key); k != nil {
			return k, nil
		}
		return newKeepsake(c, p.random)
	}
	if commons.on.Load() && key.target != "" {
		return commons.join(commonKey{key, p.opts.Authority}, c, next, found)
	}
	return found()
}

// leave closes the pool, or leaves it to the target's next policy, unless others share it. Called under calls, when all
// children are closed, or are to have another pool.
func (p *policy) leave() {
	k := p.keepsake
	k.tell.Store(nil)
	if k.common != nil {
		if k = commons.leave(k); k == nil {
			return
		}
	}
	pool := k.pool
	if p.subsetting || !memories.keeps() {
		pool.Close()
		return
	}
	// What others said of the endpoints is over. Handles would keep the whole channel in memory.
	gone := &endpoint{policy: &policy{}, seat: noSeat}
	gone.state.Store(&unheard)
	members := make([]evenkeel.Member[*endpoint], 0, len(p.listed))
	states := make([]evenkeel.StateChange, 0, 2*len(p.listed))
	for key, e := range p.listed {
		members = append(members, evenkeel.Member[*endpoint]{Endpoint: evenkeel.Endpoint{ID: key, Weight: weightOf(e.listed)}, Handle: gone})
		states = append(states,
			evenkeel.StateChange{ID: key, State: evenkeel.NotReady},
			evenkeel.StateChange{ID: key, State: evenkeel.Ready, Source: evenkeel.Checks})
	}
	pool.SetStates(states)
	if pool.Update(members) != nil { // a list that was valid before
		pool.Close()
		return
	}
	memories.keep(memoryKey{p.name, p.target()}, k)
}
