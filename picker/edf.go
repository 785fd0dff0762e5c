package picker

import (
	"math/bits"
	"sync"
)

// EDF takes the available endpoints in turn by weight: the one whose next turn is due
// first, where an endpoint of weight w is due w times in each unit of time (earliest
// deadline first). In as many picks as the weights sum to, each endpoint has exactly its
// share. In between it is off by a turn or two; one that has most of the weight beside
// n light ones, whose turns may come together, by about √n. Source: Envoy's
// EdfScheduler, with whole numbers in place of its floating-point time, in which turns
// that are due together drift apart.
//
// When to use it: any weights and up to hundreds of endpoints, for an order a little more
// even than that of [WeightedRoundRobin]. A pick takes a lock and is O(log n).
//
// Like all rotations it is blind to what the endpoints are doing, and a slow one gets its
// full share. It begins at a random point, so that of many clients that start together,
// or send only a few requests, each endpoint gets its share; together they are as
// uneven as random picks over times in which each of them sends little.
//
// An update restarts nothing: endpoints that stay keep their turns, drawn out or
// shortened if their weight changes; a newcomer has its first at a random point of its
// period. The turns of endpoints that are not available are put off.
type EDF struct{}

// Validate returns nil: there is nothing to set.
func (EDF) Validate() error { return nil }

// Needs returns 0.
func (EDF) Needs() Need { return 0 }

// Build returns a Picker that goes on where prev is, if that was built by EDF or by
// [WeightedLeastRequest].
func (EDF) Build(m *Members, prev Picker) Picker { return buildTurns(m, prev, 0) }

// turns is the Picker of the policies that keep a schedule.
type turns struct {
	records []*Record // set at construction
	bias    float64   // of WeightedLeastRequest, 0 for EDF; set at construction

	mu       sync.Mutex
	schedule schedule  // guarded by mu
	queued   *Snapshot // whose endpoints are in the queue; guarded by mu
	fresh    bool      // begin is still to come; guarded by mu
}

// turnUnit is how many steps of a schedule are one turn, so that there are fractions of
// turns. It is a power of two, to be exact, and leaves room for weights below 2^51.
const turnUnit = 1 << 12

func newTurns(weights []uint64, records []*Record, bias float64) *turns {
	fine := make([]uint64, len(weights))
	for i, w := range weights {
		fine[i] = w * turnUnit
	}
	return &turns{records: records, bias: bias, schedule: newSchedule(fine)}
}

func buildTurns(m *Members, prev Picker, bias float64) *turns {
	p := newTurns(integerWeights(m.weights), m.records, bias)
	p.fresh = true
	stayed := p.takeOver(prev)
	for i := range p.records {
		if stayed[i] {
			p.fresh = false
		} else {
			p.plan(i, m.Uint64())
		}
	}
	return p
}

// plan gives i its first turn: within a period, where 0 is the end of it and the
// greatest number its beginning.
func (p *turns) plan(i int, random uint64) {
	w := p.schedule.turns[i].weight
	if w == 0 {
		return
	}
	steps := p.steps(i)
	hi, lo := bits.Mul64(random, steps)
	p.schedule.plan(i, p.schedule.now.minus(vtime{hi, lo}.over(w)), steps)
}

// takeOver continues the schedule of prev, if that has one, for the members that both
// have. It reports which these are.
func (p *turns) takeOver(prev Picker) (stayed []bool) {
	stayed = make([]bool, len(p.records))
	old, ok := prev.(*turns)
	if !ok {
		return stayed
	}
	places := placesOf(old.records)
	old.mu.Lock()
	defer old.mu.Unlock()
	p.schedule.now, p.schedule.order = old.schedule.now, old.schedule.order
	for i, r := range p.records {
		k, ok := places[r]
		if ok && old.schedule.turns[k].weight > 0 && p.schedule.turns[i].weight > 0 {
			p.schedule.keep(i, &old.schedule, k)
			stayed[i] = true
		}
	}
	return stayed
}

// Watch puts the available endpoints in the queue.
func (p *turns) Watch(s *Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fresh && s.n > 0 {
		p.fresh = false
		p.begin(s)
	}
	p.queue(s)
}

// queue makes the available endpoints the queue. mu is held.
func (p *turns) queue(s *Snapshot) {
	p.schedule.setQueue(s.Available)
	p.queued = s
}

// begin makes it the turn of an endpoint drawn by weight. The others are each at a random
// point of their period. Together these are a random pick of the rotation: at a
// random instant of it, the next turn would more often be that of a heavy endpoint
// than its share says.
func (p *turns) begin(s *Snapshot) {
	total := uint64(0)
	for k := range s.n {
		total += p.schedule.turns[s.At(k)].weight / turnUnit
	}
	at, _ := bits.Mul64(s.Uint64(), total)
	for k := range s.n {
		i := s.At(k)
		w := p.schedule.turns[i].weight / turnUnit
		if at < w {
			p.schedule.plan(i, p.schedule.now, 0)
			return
		}
		at -= w
	}
}

// Pick implements Picker. It takes a lock and is O(log n), or O(n) when the pick before it
// was over another snapshot.
func (p *turns) Pick(s *Snapshot, _ Request, _ int64) int {
	if s.n == 1 {
		return s.At(0)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queued != s {
		p.queue(s)
	}
	return p.schedule.take(p.steps)
}

// steps returns how many steps of the schedule i's next turn is away from the one it
// is picked for.
func (p *turns) steps(i int) uint64 {
	if p.bias == 0 {
		return turnUnit
	}
	k := p.records[i].InFlight()
	if p.records[i].marks.Load()&(markShare|markAvoided) != 0 {
		// It has fewer in flight than others have, and is not to have its turn earlier for that.
		k = max(k, p.records[uniform(uint32(p.records[i].shared.uint64()>>32), len(p.records))].InFlight())
	}
	return loadSteps(k, p.bias)
}
