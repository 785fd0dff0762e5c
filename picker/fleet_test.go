package picker_test

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// fleet drives a registry in virtual time: arrivals at a constant pace, each endpoint
// answering as its function says. It has no queues: the traps need none.
type fleet struct {
	tb       testing.TB
	registry *picker.Registry
	policy   picker.Policy
	snapshot *picker.Snapshot
	now      int64
	sweepAt  int64         // the next sweep; never: none at all
	every    time.Duration // from sweep to sweep; a second at first
	events   ends
	counts   map[string]int
	kind     picker.Kind
}

// never is an instant that no test reaches.
const never = int64(math.MaxInt64)

// answer says how the endpoint at an index answers a request that is sent at an instant:
// after how long, and with what.
type answer func(i int, now int64) (time.Duration, picker.Outcome)

// end is one request's end to come.
type end struct {
	at     int64
	pick   picker.Pick
	result picker.Result
}

type ends []end

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at < e[j].at }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

func newFleet(tb testing.TB, policy picker.Policy, list []picker.Endpoint, seed uint64) *fleet {
	tb.Helper()
	g, s := build(tb, policy, list, rand.New(rand.NewPCG(seed, 99)).Uint64)
	return &fleet{tb: tb, registry: g, policy: policy, snapshot: s, counts: map[string]int{}, every: time.Second}
}

// update replaces the list; all are available.
func (f *fleet) update(list []picker.Endpoint) {
	f.tb.Helper()
	f.show(list, nil)
}

// show replaces the list, of which those at the given indices are available.
func (f *fleet) show(list []picker.Endpoint, available []int32) {
	f.tb.Helper()
	m, err := f.registry.Members(list, f.now)
	if err != nil {
		f.tb.Fatal(err)
	}
	f.snapshot = picker.NewSnapshot(m, available, f.policy, f.policy.Build(m, nil))
}

// run sends rate requests a second for d.
func (f *fleet) run(d time.Duration, rate int64, answer answer) {
	f.tb.Helper()
	f.runEvery(d, time.Second/time.Duration(rate), answer)
}

// runEvery sends a request every step for d.
func (f *fleet) runEvery(d, step time.Duration, answer answer) {
	f.tb.Helper()
	for until := f.now + int64(d); f.now < until; f.now += int64(step) {
		f.sweepUpTo(f.now)
		f.finish(f.now)
		p, i, err := f.snapshot.Pick(picker.Request{Kind: f.kind}, f.now)
		if err != nil {
			f.tb.Fatal(err)
		}
		f.counts[p.Record().ID()]++
		after, outcome := answer(i, f.now)
		heap.Push(&f.events, end{f.now + int64(after), p, picker.Result{Outcome: outcome}})
	}
}

// sweepUpTo does the sweeps that are due up to instant now, and ends what ends before them.
func (f *fleet) sweepUpTo(now int64) {
	for f.sweepAt <= now {
		f.finish(f.sweepAt)
		f.registry.Sweep(f.sweepAt)
		f.snapshot.Sweep(f.sweepAt)
		f.sweepAt += int64(f.every)
	}
}

// rest lets d pass without requests.
func (f *fleet) rest(d time.Duration) {
	f.now += int64(d)
	f.sweepUpTo(f.now)
	f.finish(f.now)
}

// finish ends what ends up to instant now.
func (f *fleet) finish(now int64) {
	for len(f.events) > 0 && f.events[0].at <= now {
		e := heap.Pop(&f.events).(end)
		e.pick.Done(e.at, e.result)
	}
}

func (f *fleet) share(id string) float64 {
	total := 0
	for _, n := range f.counts {
		total += n
	}
	return float64(f.counts[id]) / float64(total)
}

const usual = 20 * time.Millisecond

func healthy(int, int64) (time.Duration, picker.Outcome) { return usual, picker.Success }
