package grpcbalancer

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/experimental/balancer/weight"
	"google.golang.org/grpc/resolver"
)

// world is a policy with its channel, in a bubble.
type world struct {
	*rig
	*oracle
	seed    uint64
	callers int // beside each event
	done    []attempt
	over    bool // the policy is closed
}

type attempt struct {
	key  string
	done func(balancer.DoneInfo)
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{rig: &rig{fakeChannel: newFakeChannel(), t: t}, oracle: newOracle(), seed: seed}
	w.manual = true
	w.onPublish = w.published
	rnd := rand.New(rand.NewPCG(seed, 7))
	var mu sync.Mutex
	random := func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return rnd.Uint64()
	}
	w.policy = builder{rand: random, child: w.newChild}.Build(w.fakeChannel, balancer.BuildOptions{Target: fakeTarget}).(*policy)
	w.setConfig(0)
	return w
}

func (w *world) setConfig(n uint64) {
	w.rig.config = parse(w.t, eventConfigs[n%uint64(len(eventConfigs))])
}

// run lets these events happen, and what has to be in the end; at is the event that went wrong.
func (w *world) run(events []event) (at int, err error) {
	defer func() {
		w.policy.Close()
		w.settle()
	}()
	for i, e := range events {
		for range w.callers {
			go w.call()
		}
		w.happen(e)
		if err := w.faults(); err != nil {
			return i, fmt.Errorf("after %v: %w", e, err)
		}
	}
	w.finish()
	return len(events), w.faults()
}

// call makes some calls.
func (w *world) call() {
	for i := range 20 {
		if w.latest().Picker != nil {
			w.pickAndEnd(i)
		}
	}
}

func (w *world) happen(e event) {
	rnd := rand.New(rand.NewPCG(e.n, w.seed))
	switch e.kind {
	case newList:
		w.list(rnd)
	case newConfig:
		w.setConfig(e.n)
		w.tell(w.rig.list)
	case badConfig:
		before := w.rig.config
		w.rig.config = struct{ loadBalancingConfig }{}
		w.tell(anyList(rnd))
		w.rig.config = before
	case resolverFails:
		text := fmt.Sprintf("no answer from %d", e.n%5)
		w.policy.ResolverError(errors.New(text))
		if !w.over {
			w.resolver, w.told = text, true
		}
	case exitIdle:
		w.policy.ExitIdle()
	case connection, healthCheck:
		w.connect(e, rnd)
	case begin:
		w.begin()
	case end:
		if len(w.done) > 0 {
			w.end(int(e.n%uint64(len(w.done))), anyEnd(rnd))
		}
	case deliver:
		w.deliver(int(e.n % 4))
	case rest:
		w.rest()
	case pass:
		time.Sleep([]time.Duration{time.Microsecond, coalesceFor, 260 * time.Millisecond, time.Second}[e.n%4])
		synctest.Wait()
	case closing:
		w.close()
	}
}

// anyList returns a list with all that lists may have in them.
func anyList(rnd *rand.Rand) []resolver.Endpoint {
	type key struct{}
	var list []resolver.Endpoint
	for range rnd.IntN(2 * len(universe)) {
		addrs := slices.Clone(universe[rnd.IntN(len(universe))])
		rnd.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
		if rnd.IntN(6) == 0 {
			addrs = append(addrs, addrs[0])
		}
		e := at(addrs...)
		switch rnd.IntN(8) {
		case 0:
			e = weight.Set(e, weight.EndpointInfo{Weight: rnd.Uint32N(4)})
		case 1:
			e.Attributes = attributes.New(key{}, rnd.Int())
		case 2:
			e.Attributes = attributes.New(key{}, []int{1}) // cannot be compared
		case 3:
			e.Addresses[0].Attributes = attributes.New(key{}, rnd.IntN(3))
		case 4:
			e = resolver.Endpoint{}
		}
		list = append(list, e)
	}
	return list
}

func (w *world) list(rnd *rand.Rand) {
	list := anyList(rnd)
	switch rnd.IntN(6) {
	case 0:
		list = nil
	case 1:
		list = w.rig.list // the same again
	case 2, 3:
		for _, addrs := range universe {
			list = append(list, at(addrs...))
		}
	}
	w.tell(list)
}

// tell hands over a list, and the oracle learns what of it counts.
func (w *world) tell(list []resolver.Endpoint) {
	before := w.rig.list
	err := w.send(slices.Clone(list))
	if w.over {
		w.rig.list = before
		return
	}
	c, ok := w.rig.config.(*lbConfig)
	if !ok { // refused as a whole
		w.rig.list = before
		if !errors.Is(err, balancer.ErrBadResolverState) {
			w.fault("a bad config: %v", err)
		}
		if len(w.members) == 0 {
			w.resolver, w.told = "BalancerConfig", true
		}
		return
	}
	w.members, w.oracle.config, w.resolver, w.told = map[string]float64{}, c.config, "", true
	for _, e := range list {
		addrs := map[string]bool{}
		for _, a := range e.Addresses {
			addrs[a.Addr] = true
		}
		key := strings.Join(slices.Sorted(maps.Keys(addrs)), ",")
		if _, dup := w.members[key]; !dup && key != "" {
			w.members[key] = float64(max(weight.FromEndpoint(e).Weight, 1))
		}
	}
	if len(w.members) == 0 {
		w.resolver = errNoEndpoints.Error()
	}
	if want := len(w.members) == 0; (err == balancer.ErrBadResolverState) != want || !want && err != nil {
		w.fault("a list of %d: error %v", len(w.members), err)
	}
}

// connect has a connection become what it may become next, or one that is READY say how it is.
func (w *world) connect(e event, rnd *rand.Rand) {
	live := w.liveLinks()
	if len(live) == 0 {
		return
	}
	l := live[e.n%uint64(len(live))]
	bad := fmt.Errorf("trouble %d at %s", e.n%7, l.addr)
	switch {
	case l.is == connectivity.Ready && e.kind == healthCheck:
		if is := []connectivity.State{connectivity.Ready, connectivity.Connecting, connectivity.TransientFailure}[rnd.IntN(3)]; is == connectivity.TransientFailure {
			l.healthBecomes(is, bad)
		} else {
			l.healthBecomes(is, nil)
		}
	case l.is == connectivity.Ready, l.is == connectivity.TransientFailure:
		l.goesTo(connectivity.Idle, nil)
	case l.is == connectivity.Connecting && rnd.IntN(3) == 0:
		l.goesTo(connectivity.TransientFailure, bad)
	case l.is == connectivity.Connecting:
		l.goesTo(connectivity.Ready, nil)
	}
}

func (l *link) goesTo(s connectivity.State, err error) {
	l.is = s
	l.becomes(s, err)
}

// liveLinks returns the connections that are not shut down, as the channel has them.
func (w *world) liveLinks() (live []*link) {
	w.rig.mu.Lock()
	defer w.rig.mu.Unlock()
	w.oracle.mu.Lock()
	defer w.oracle.mu.Unlock()
	for _, l := range w.links {
		if l.fakeConn.asked > l.asked {
			l.asked, l.is = l.fakeConn.asked, connectivity.Connecting
		}
		if !l.shut {
			live = append(live, l)
		}
	}
	return live
}

func (w *world) begin() {
	p := w.latest().Picker
	if p == nil || w.over {
		return
	}
	if key, done := w.finds(p); done != nil {
		w.done = append(w.done, attempt{key, done})
		w.open[key]++
	}
}

func (w *world) end(i int, info balancer.DoneInfo) {
	w.open[w.done[i].key]--
	w.done[i].done(info)
	w.done = slices.Delete(w.done, i, i+1)
}

// deliver delivers n of the events that are queued.
func (w *world) deliver(n int) {
	for range n {
		w.rig.mu.Lock()
		var f func()
		if len(w.events) > 0 {
			f, w.events = w.events[0], w.events[1:]
		}
		w.rig.mu.Unlock()
		if f != nil {
			f()
		}
	}
}

// rest lets everything come to rest, and compares.
func (w *world) rest() {
	w.settle()
	w.passWindow()
	if !w.over {
		w.compare(w.rig)
		return
	}
	if n := w.openConns(); n != 0 || len(w.live()) > 0 {
		w.fault("%d connections and %d children after Close", n, len(w.live()))
	}
	if s := w.latest(); s.Picker != nil && s.ConnectivityState == connectivity.Ready {
		if _, err := s.Picker.Pick(balancer.PickInfo{}); !errors.Is(err, balancer.ErrNoSubConnAvailable) {
			w.fault("a pick after Close: %v, want to wait for the successor", err)
		}
	}
}

func (w *world) close() {
	w.policy.Close()
	w.over = true
	w.oracle.mu.Lock()
	defer w.oracle.mu.Unlock()
	w.oracle.closed = true
}

// finish has all that is well get well, and then ends everything.
func (w *world) finish() {
	if !w.over {
		w.recover()
	}
	for len(w.done) > 0 {
		w.end(0, succeeded)
	}
	w.rest()
	w.close()
	w.rest()
	time.Sleep(time.Hour)
	w.rest()
}

// recover lets all connections come up: within a while everybody is READY.
func (w *world) recover() {
	for range 40 {
		for _, l := range w.liveLinks() {
			switch l.is {
			case connectivity.Connecting:
				l.goesTo(connectivity.Ready, nil)
			case connectivity.TransientFailure:
				l.goesTo(connectivity.Idle, nil)
			case connectivity.Ready:
				l.healthBecomes(connectivity.Ready, nil)
			}
		}
		w.settle()
		time.Sleep(100 * time.Millisecond)
	}
	w.rest()
	for key, s := range w.live() {
		if s != connectivity.Ready {
			w.fault("%s is %v in the end", key, s)
		}
	}
}
