package evenkeel_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/testcost"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// op is one operation of a random walk through a pool's life; what it does to whom follows from its numbers.
type op struct{ what, arg uint16 }

func randomOps(seed uint64, n int) []op {
	r := rand.New(rand.NewPCG(seed, 71))
	ops := make([]op, n)
	for i := range ops {
		ops[i] = op{uint16(r.IntN(100)), uint16(r.IntN(1 << 16))}
	}
	return ops
}

// holds runs a property over random walks. Of the first that breaks it, it reports the shortest beginning
// that does, less all operations that do not matter.
func holds(t *testing.T, walks uint64, steps int, property func(ops []op) error) {
	t.Helper()
	if testcost.Race { // it is one goroutine
		walks = walks/8 + 1
	}
	for seed := range walks {
		ops := randomOps(seed, steps)
		if property(ops) == nil {
			continue
		}
		least, most := 1, len(ops)
		for least < most {
			if mid := (least + most) / 2; property(ops[:mid]) != nil {
				most = mid
			} else {
				least = mid + 1
			}
		}
		ops = ops[:most]
		for i := len(ops) - 1; i >= 0; i-- {
			if without := append(ops[:i:i], ops[i+1:]...); property(without) != nil {
				ops = without
			}
		}
		t.Fatalf("seed %d: %v\nafter %v", seed, property(ops), ops)
	}
}

// life is a pool with what must be true of it, counted by itself.
type life struct {
	pool     *evenkeel.Pool[int]
	now      time.Time
	config   evenkeel.Config
	shuffled *rand.Rand // lists come in random order, if there is one
	again    bool       // what was said is said again after each operation
	good     bool       // no result blames anybody
	branch   bool       // the pool is another's only branch
	scale    float64    // of all weights
	list     []evenkeel.Member[int]
	open     []evenkeel.Pick[int]
	inFlight map[int]int64
	panicked bool
	trace    strings.Builder // who was picked
	err      error
}

func (l *life) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf(format, args...)
	}
}

// start gives the pool its configuration and twelve endpoints of different weights.
func (l *life) start(c evenkeel.Config, random func() uint64) {
	if l.scale == 0 {
		l.scale = 1
	}
	l.config, l.now, l.inFlight = c, origin, map[int]int64{}
	var err error
	if l.pool, err = evenkeel.NewPool[int](c, evenkeel.Options{Rand: random, Start: origin}); err != nil {
		l.fail("%v", err)
		return
	}
	if l.branch {
		if l.pool, err = l.pool.Branch(); err != nil {
			l.fail("%v", err)
			return
		}
	}
	list := members(12)
	for i := range list {
		list[i].Weight = evenkeel.WeightOf(float64(1 + i%4))
	}
	l.update(list)
}

// update hands over a list, in another order if that must not matter.
func (l *life) update(list []evenkeel.Member[int]) {
	l.list = list
	given := make([]evenkeel.Member[int], len(list))
	for i, m := range list {
		if w := m.Weight.Value(); w != 1 || l.scale != 1 {
			m.Weight = evenkeel.WeightOf(w * l.scale)
		}
		given[i] = m
	}
	if l.shuffled != nil {
		l.shuffled.Shuffle(len(given), func(i, j int) { given[i], given[j] = given[j], given[i] })
	}
	if err := l.pool.UpdateAt(l.now, given); err != nil {
		l.fail("%v", err)
	}
}

// do does one operation, and checks what must hold after it.
func (l *life) do(o op) {
	switch arg := int(o.arg); {
	case o.what < 45:
		l.pick(o.arg)
	case o.what < 72:
		l.end(arg)
	case o.what < 82:
		l.now = l.now.Add(time.Duration(arg%1000) * time.Millisecond)
		l.pool.Sweep(l.now)
	case o.what < 86:
		l.change(uint64(o.arg))
	case o.what < 92:
		l.state(arg)
	case o.what < 95 && len(l.list) > 0:
		l.pool.Drain(l.list[arg%len(l.list)].ID)
	case o.what < 98 && len(l.list) > 0:
		l.pool.Resume(l.list[arg%len(l.list)].ID)
	default:
		for range 5 { // of one endpoint: enough to eject it
			l.endOf(arg % 16)
		}
	}
	if l.again {
		l.repeat(o)
	}
	l.check()
}

// pick picks somebody, of whom it must be known why.
func (l *life) pick(arg uint16) {
	before := statsByID(l.pool.StatsAt(l.now))
	panicking := l.pool.StatsAt(l.now).Panicking
	q := evenkeel.Request{Kind: picker.Kind(arg % 3), Idempotent: arg&8 != 0, Key: uint64(arg), HasKey: arg&16 != 0}
	if arg&96 == 0 && len(l.open) > 0 {
		q.Avoid = []*evenkeel.Record{l.open[int(arg)%len(l.open)].Record()}
	}
	k, err := l.pool.PickAt(l.now, q)
	if err != nil {
		fmt.Fprintln(&l.trace, err)
		return
	}
	id := k.Record().ID()
	fmt.Fprintln(&l.trace, id)
	e, listed := before[id]
	switch {
	case !listed:
		l.fail("%s was picked, which is not in the list", id)
	case id != fmt.Sprint("e", k.Handle()):
		l.fail("%s came with the handle %d", id, k.Handle())
	case e.State != evenkeel.Ready && !(e.State == evenkeel.Failing && panicking):
		l.fail("%s was picked, which is %v, in a panic: %v", id, e.State, panicking)
	case e.Weight == 0:
		l.fail("%s was picked, whose weight is 0", id)
	}
	if arg&256 != 0 {
		k.SetDeadline(l.now.Add(time.Duration(arg%512) * time.Millisecond))
	}
	l.open = append(l.open, k)
	l.inFlight[k.Handle()]++
}

// outcomes of requests that end as others did, mostly.
var walkOutcomes = []evenkeel.Outcome{evenkeel.Success, evenkeel.Success, evenkeel.Failure, evenkeel.Timeout, evenkeel.Unreached,
	evenkeel.Success, evenkeel.Canceled, evenkeel.Overload, evenkeel.Unknown, evenkeel.Failure}

func (l *life) end(arg int) {
	if len(l.open) == 0 {
		return
	}
	i := arg % len(l.open)
	r := evenkeel.Result{Outcome: walkOutcomes[arg/16%len(walkOutcomes)]}
	if l.good && r.Outcome != evenkeel.Canceled && r.Outcome != evenkeel.Overload && r.Outcome != evenkeel.Unknown {
		r.Outcome = evenkeel.Success
	}
	if arg&512 != 0 && l.open[i].Record() != nil {
		l.open[i].AnsweredAt(l.now, evenkeel.Result{Outcome: evenkeel.Success})
	}
	l.inFlight[l.open[i].Handle()]--
	l.open[i].DoneAt(l.now, r)
	l.open[i].DoneAt(l.now, r) // does nothing
	l.open = append(l.open[:i], l.open[i+1:]...)
}

// endOf ends the oldest request of one endpoint, with a failure.
func (l *life) endOf(handle int) {
	for i := range l.open {
		if l.open[i].Handle() == handle {
			r := evenkeel.Result{Outcome: evenkeel.Failure}
			if l.good {
				r.Outcome = evenkeel.Success
			}
			l.inFlight[handle]--
			l.open[i].DoneAt(l.now, r)
			l.open = append(l.open[:i], l.open[i+1:]...)
			return
		}
	}
}

// change makes another list, of up to sixteen.
func (l *life) change(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 72))
	var list []evenkeel.Member[int]
	for _, m := range members(16) {
		if r.IntN(5) == 0 {
			continue
		}
		if r.IntN(3) == 0 {
			m.Weight = evenkeel.WeightOf(float64(r.IntN(4)))
		}
		m.NotReady = r.IntN(10) == 0
		list = append(list, m)
	}
	l.update(list)
}

func (l *life) state(arg int) {
	c := evenkeel.StateChange{ID: fmt.Sprint("e", arg%18), Source: evenkeel.Source(arg / 18 % 3)}
	if arg&1024 != 0 {
		c.State = evenkeel.State(arg / 64 % 5)
	}
	l.pool.SetStates([]evenkeel.StateChange{c})
}

// repeat says once more what was said: nothing may change.
func (l *life) repeat(o op) {
	before, generation := fmt.Sprintf("%+v", l.pool.StatsAt(l.now)), l.pool.Generation()
	l.update(l.list)
	if err := l.pool.SetConfigAt(l.now, l.config); err != nil {
		l.fail("%v", err)
	}
	if after := fmt.Sprintf("%+v", l.pool.StatsAt(l.now)); after != before || l.pool.Generation() != generation {
		l.fail("after %v the same list changed\n%s to\n%s", o, before, after)
	}
}

// check holds the pool to what was counted here.
func (l *life) check() {
	s := l.pool.StatsAt(l.now)
	up, all := 0, 0
	for i, e := range s.Endpoints {
		handle := l.pool.Selected()[i]
		if e.InFlight != l.inFlight[handle] || e.InFlight < 0 || e.Leaked != 0 {
			l.fail("%s has %d in flight and %d leaked, want %d", e.ID, e.InFlight, e.Leaked, l.inFlight[handle])
		}
		out := e.Ejection.State == outlier.Ejected || e.Ejection.State == outlier.Probing
		if most := l.config.Limit.PerEndpoint; most > 0 && e.InFlight > int64(most) {
			l.fail("%s has %d in flight, want at most %d", e.ID, e.InFlight, most)
		}
		if l.good && out {
			l.fail("%s is out, and nothing failed: %+v", e.ID, e.Ejection)
		}
		if e.State == evenkeel.Draining || e.State == evenkeel.Unchecked || e.Weight == 0 {
			continue
		}
		all++
		if e.State == evenkeel.Ready && !out {
			up++
		}
	}
	threshold := 50.0
	if l.panicked {
		threshold = 60
	}
	l.panicked = all > 0 && float64(up) < threshold*float64(all)/100
	if s.Panicking != l.panicked {
		l.fail("%d of %d are available: panic is %v, want %v", up, all, s.Panicking, l.panicked)
	}
	if !s.Panicking && s.Ready != up {
		l.fail("%d may be picked, want %d", s.Ready, up)
	}
}

// rest ends all requests.
func (l *life) rest() {
	for len(l.open) > 0 {
		l.end(0)
	}
	for _, e := range l.pool.StatsAt(l.now).Endpoints {
		if e.InFlight != 0 {
			l.fail("%s has %d in flight at rest", e.ID, e.InFlight)
		}
	}
	if n := l.pool.StatsAt(l.now).Overflowed; n != 0 {
		l.fail("%d are beyond the limit at rest", n)
	}
}
