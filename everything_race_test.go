package evenkeel_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// fleetIDs is how many endpoints there ever are; a list has some of them.
const fleetIDs = 24

// everything is a pool with all that is done to it at the same time, and what must hold meanwhile.
type everything struct {
	t    *testing.T
	pool *evenkeel.Pool[int]
	stop chan struct{}

	// ended is raised by each role that gets something done, so that one that hangs is seen.
	ended           [roles]atomic.Uint64
	closing, closed atomic.Bool // Close may have begun, and has returned

	// away and drained are odd while the endpoint is certainly not in the list, or drained. They are
	// changed by who holds lists, before what ends it and after what begins it.
	lists         sync.Mutex
	away, drained [fleetIDs]atomic.Uint64
	picked        atomic.Uint64
	refused       atomic.Uint64

	mu      sync.Mutex
	records map[*evenkeel.Record]bool // all that were ever picked
}

// The roles, besides users, of which there are sixty-four.
const (
	lister = iota
	configurer
	stateSetter
	drainer
	sweeper
	reader
	users

	roles
)

func newEverything(t *testing.T) *everything {
	t.Helper()
	p, err := evenkeel.NewPool[int](evenkeel.Config{}, evenkeel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := &everything{t: t, pool: p, records: map[*evenkeel.Record]bool{}}
	e.update(members(fleetIDs))
	return e
}

// run lets all roles work for so long. A role that does nothing for a minute ends the process with the
// stacks of all goroutines.
func (e *everything) run(length time.Duration, seed uint64, atLast func()) {
	e.stop = make(chan struct{})
	var wg sync.WaitGroup
	start := func(role int, do func(r *rand.Rand)) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(role)))
			for !e.stopping() {
				do(r)
				e.ended[role].Add(1)
				runtime.Gosched()
			}
		})
	}
	start(lister, e.list)
	start(configurer, e.configure)
	start(stateSetter, e.setStates)
	start(drainer, e.drain)
	start(sweeper, e.sweep)
	start(reader, e.read)
	for u := range uint64(64) {
		wg.Go(func() { e.use(rand.New(rand.NewPCG(seed+1, u))) })
	}
	end := time.NewTimer(length)
	watchdog := time.AfterFunc(length+time.Minute, dumpAll)
	look := time.NewTicker(20 * time.Second)
	defer look.Stop()
	var before [roles]uint64
	for running := true; running; {
		select {
		case <-end.C:
			running = false
		case <-look.C:
			for i := range e.ended {
				if n := e.ended[i].Load(); n == before[i] {
					dumpAll()
				} else {
					before[i] = n
				}
			}
		}
	}
	atLast()
	close(e.stop)
	wg.Wait()
	watchdog.Stop()
}

func dumpAll() {
	buf := make([]byte, 4<<20)
	panic(fmt.Sprintf("somebody waits for ever:\n%s", buf[:runtime.Stack(buf, true)]))
}

func (e *everything) stopping() bool {
	select {
	case <-e.stop:
		return true
	default:
		return false
	}
}

// use keeps up to eight requests in flight, does to each what may be done, and ends them all.
func (e *everything) use(r *rand.Rand) {
	var mine []evenkeel.Pick[int]
	seen := map[*evenkeel.Record]bool{}
	for !e.stopping() {
		if k, ok := e.pick(r, mine); ok {
			seen[k.Record()] = true
			mine = append(mine, k)
		}
		if len(mine) > 0 {
			e.answer(r, &mine[r.IntN(len(mine))])
		}
		for len(mine) > 8 || len(mine) > 0 && r.IntN(3) == 0 {
			i := r.IntN(len(mine))
			e.finish(r, &mine[i])
			mine[i] = mine[len(mine)-1]
			mine = mine[:len(mine)-1]
		}
		e.ended[users].Add(1)
		runtime.Gosched() // or those who wait for a lock wait for sixty-four slices of time
	}
	for i := range mine {
		e.finish(r, &mine[i])
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for rec := range seen {
		e.records[rec] = true
	}
}

func (e *everything) pick(r *rand.Rand, mine []evenkeel.Pick[int]) (k evenkeel.Pick[int], ok bool) {
	q := evenkeel.Request{Kind: picker.Kind(r.IntN(3)), Idempotent: r.IntN(2) == 0, HasKey: r.IntN(2) == 0, Key: r.Uint64N(50) << 40}
	if len(mine) > 0 && r.IntN(4) == 0 {
		q.Avoid = []*evenkeel.Record{mine[r.IntN(len(mine))].Record()}
	}
	closed := e.closed.Load()
	var away, drained [fleetIDs]uint64
	for i := range fleetIDs {
		away[i], drained[i] = e.away[i].Load(), e.drained[i].Load()
	}
	var err error
	if r.IntN(2) == 0 {
		k, err = e.pool.Pick(q)
	} else {
		k, err = e.pool.PickAt(time.Now().Add(time.Duration(r.IntN(200)-100)*time.Millisecond), q)
	}
	if err != nil {
		e.checkError(err, closed)
		return k, false
	}
	e.picked.Add(1)
	i := k.Handle()
	switch {
	case closed:
		e.t.Error("a pick of a closed pool found somebody")
	case k.Record().ID() != fmt.Sprint("e", i):
		e.t.Errorf("the handle %d came with %s", i, k.Record().ID())
	case away[i]%2 == 1 && e.away[i].Load() == away[i]:
		e.t.Errorf("e%d was picked, which had left before the pick began", i)
	case drained[i]%2 == 1 && e.drained[i].Load() == drained[i]:
		e.t.Errorf("e%d was picked, which was drained before the pick began", i)
	}
	if r.IntN(2) == 0 {
		k.SetDeadline(time.Now().Add(time.Duration(r.IntN(20)-5) * time.Millisecond))
	}
	return k, true
}

func (e *everything) checkError(err error, closed bool) {
	if errors.Is(err, evenkeel.ErrOverloaded) {
		e.refused.Add(1)
	}
	for _, known := range []error{evenkeel.ErrEmpty, evenkeel.ErrNoneReady, evenkeel.ErrOverloaded, evenkeel.ErrClosed} {
		if errors.Is(err, known) && (known == evenkeel.ErrClosed && e.closing.Load() || known != evenkeel.ErrClosed && !closed) {
			return
		}
	}
	e.t.Errorf("closed %v: %v", closed, err)
}

// answer says what an answer begins with, or that it has.
func (e *everything) answer(r *rand.Rand, k *evenkeel.Pick[int]) {
	switch r.IntN(6) {
	case 0:
		k.FirstByte()
	case 1:
		k.FirstByteAt(time.Now())
	case 2:
		k.Answered(anyResult(r))
	case 3:
		k.AnsweredAt(time.Now(), anyResult(r))
	}
}

func (e *everything) finish(r *rand.Rand, k *evenkeel.Pick[int]) {
	for range 1 + r.IntN(2) { // a second Done does nothing
		if r.IntN(2) == 0 {
			k.Done(anyResult(r))
		} else {
			k.DoneAt(time.Now(), anyResult(r))
		}
	}
}

// anyResult is of any kind, and for some time that of a pool that is well.
func anyResult(r *rand.Rand) evenkeel.Result {
	q := evenkeel.Result{Outcome: evenkeel.Outcome(r.IntN(8))} // one of which is none
	if r.IntN(3) > 0 {
		q.Outcome = evenkeel.Success
	}
	switch r.IntN(4) {
	case 0:
		q.Status = picker.HTTPStatus([]int{200, 404, 429, 500, 501, 503, 999}[r.IntN(7)])
	case 1:
		q.Status = picker.GRPCStatus(r.Uint32N(18))
	}
	if r.IntN(8) == 0 {
		q.RetryAfter = time.Duration(r.IntN(20)-2) * time.Millisecond
	}
	return q
}

// Everything at once: users, lists, configurations, states, drains, sweeps and readers. Nobody hangs,
// nobody is picked who had left, or was drained, before; at rest nothing is in flight, and all of a limit is free.
// Closing from several sides at once is final. Run with -race; EVENKEEL_LONG makes it a minute.
func TestEverythingAtOnceHoldsItsInvariants(t *testing.T) {
	length := 2 * time.Second
	if os.Getenv("EVENKEEL_LONG") != "" {
		length = time.Minute
	}
	e := newEverything(t)
	e.run(length, 1, func() {})
	e.atRest()
	e.limitIsFree()
	e.run(200*time.Millisecond, 2, func() {
		e.closing.Store(true)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(e.pool.Close)
		}
		wg.Wait()
		e.closed.Store(true)
		for n := e.ended[users].Load(); e.ended[users].Load() < n+1000; { // let them see it
			runtime.Gosched()
		}
		if err := e.pool.Update(members(3)); !errors.Is(err, evenkeel.ErrClosed) {
			t.Errorf("Update after Close: %v", err)
		}
		if err := e.pool.SetConfig(evenkeel.Config{Policy: picker.Random{}}); !errors.Is(err, evenkeel.ErrClosed) {
			t.Errorf("SetConfig after Close: %v", err)
		}
	})
	e.atRest()
	if e.picked.Load() == 0 {
		t.Error("nobody was ever picked")
	}
	t.Logf("%d picks, %d refused, %d records; turns by role %v", e.picked.Load(), e.refused.Load(), len(e.records), e.turns())
}

func (e *everything) turns() (n [roles]uint64) {
	for i := range n {
		n[i] = e.ended[i].Load()
	}
	return n
}

// atRest: every request has ended, so nothing is in flight, within a limit or beyond one, or was given up as lost.
func (e *everything) atRest() {
	e.t.Helper()
	for rec := range e.records {
		if rec.InFlight() != 0 || rec.Streams() != 0 || rec.Leaked() != 0 {
			e.t.Errorf("%s: %d in flight, %d streams, %d leaked at rest", rec.ID(), rec.InFlight(), rec.Streams(), rec.Leaked())
		}
	}
	s := e.pool.Stats()
	if s.Overflowed != 0 {
		e.t.Errorf("%d beyond the limit at rest", s.Overflowed)
	}
	for _, x := range s.Endpoints {
		if x.InFlight != 0 || x.Leaked != 0 {
			e.t.Errorf("%s: %d in flight, %d leaked at rest", x.ID, x.InFlight, x.Leaked)
		}
	}
}

// limitIsFree takes every place within the limit, if there is one, whatever else the last configuration was.
func (e *everything) limitIsFree() {
	e.t.Helper()
	e.lists.Lock()
	defer e.lists.Unlock()
	now := time.Now()
	if err := e.pool.SetConfig(evenkeel.Config{Policy: picker.Random{}}); err != nil { // nothing but the limit refuses
		e.t.Error(err)
	}
	for i := range fleetIDs {
		e.drained[i].Store(0)
		e.pool.Resume(fmt.Sprint("e", i))
	}
	for range 20 {
		now = now.Add(100 * time.Millisecond)
		e.pool.Sweep(now)
	}
	limit := e.pool.StatsAt(now).Limit
	var held []evenkeel.Pick[int]
	for i := range limit {
		k, err := e.pool.PickAt(now, evenkeel.Request{})
		if errors.Is(err, evenkeel.ErrOverloaded) {
			e.t.Errorf("%d of %d places are free at rest", i, limit)
			break
		}
		if err == nil {
			held = append(held, k)
		}
	}
	for i := range held {
		held[i].DoneAt(now, evenkeel.Result{})
	}
	e.t.Logf("%d places within the limit are free at rest", limit)
}

// read checks all that can be seen, whatever happens meanwhile.
func (e *everything) read(*rand.Rand) {
	s := e.pool.Stats()
	if s.Listed < len(s.Endpoints) || s.Ready > len(s.Endpoints) || s.Ejected > len(s.Endpoints) || s.Limit < 0 || s.Overflowed < 0 {
		e.t.Errorf("%+v", s)
	}
	for _, x := range s.Endpoints {
		if x.InFlight < 0 || x.Leaked < 0 || x.Latency < 0 || x.Avoided < 0 || !(x.Success >= 0 && x.Success <= 1) ||
			!(x.Weight >= 0) || math.IsInf(x.Weight, 0) || x.Ejection.Wait < 0 {
			e.t.Errorf("%+v", x)
		}
		_ = x.Reasons()
	}
	before := e.pool.Generation()
	selected := map[int]bool{}
	for _, h := range e.pool.Selected() {
		if selected[h] {
			e.t.Errorf("%d is selected twice", h)
		}
		selected[h] = true
	}
	if e.pool.Generation() < before {
		e.t.Error("the generation went back")
	}
}
