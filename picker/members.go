package picker

import (
	"math"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
)

// Tombstone is how long the record of a removed endpoint is kept for its return, so
// that a list that flaps neither forgets nor pardons.
const Tombstone = time.Minute

// LeakAfter is how long an endpoint may have requests in flight without a single
// Done, and without a stream, before they are no longer believed.
const LeakAfter = 10 * time.Minute

// Registry keeps the records of a pool's endpoints by ID. It is not safe for
// concurrent use; its owner serialises calls (the records it hands out are safe).
type Registry struct {
	shared  *shared
	records map[string]*Record // members' and, for a while, former members'
	scratch []knownLatency
	unasked map[*Record]unasked // those that had no request before the last sweep
	due     []*Record           // scratch, too
	serial  uint32              // of the last record made

	// The pace of requests, from sweep to sweep.
	sweptAt int64
	picks   uint64  // since the registry was made
	gap     float64 // mean time between two picks in nanoseconds; 0 unknown
	unit    time.Duration
	latency time.Duration // the pool's, as learning goes by it
	met     int64         // log2 of the median latency over requests in Q16; 0 unknown
	members int           // as of the last sweep
}

// Len returns the number of records kept: those of members, and those of former
// members that are not forgotten yet.
func (g *Registry) Len() int { return len(g.records) }

// NewRegistry returns an empty registry. rand is the source of all randomness of the
// pickers over it; nil means the runtime's. It must be safe for concurrent use.
func NewRegistry(randomness func() uint64) *Registry {
	g := &Registry{shared: &shared{rand: randomness}, records: make(map[string]*Record), unasked: make(map[*Record]unasked)}
	g.shared.median.Store(ewma.NoTarget)
	g.shared.mean.Store(ewma.NoTarget)
	g.shared.target.Store(ewma.NoTarget)
	g.Learn(0)
	return g
}

// Learn sets what is learnt from results from now on: the needs of the policy in use. A
// registry that was never told learns nothing.
func (g *Registry) Learn(needs Need) {
	g.shared.learning.Store(newLearning(needs, max(g.unit, minUnit), max(g.latency, 1)))
}

// Members is an immutable, validated list of endpoints with their records.
// An endpoint's index in it is its position in the list.
type Members struct {
	endpoints []Endpoint
	records   []*Record
	weights   []float64
	// lgWeights is log2 of the weights in Q16, nil when all usable ones are equal.
	lgWeights  []int64
	allDrained bool
	shared     *shared
}

// Members validates list and returns it with a record for each endpoint: the one
// that its ID already has, or a new one that joined at instant now. On an error
// nothing changes. The list is copied.
func (g *Registry) Members(list []Endpoint, now int64) (*Members, error) {
	if err := Validate(list); err != nil {
		return nil, err
	}
	m := &Members{
		endpoints: slices.Clone(list),
		records:   make([]*Record, len(list)),
		weights:   make([]float64, len(list)),
		shared:    g.shared,
	}
	for _, r := range g.records {
		if r.member() {
			r.removedAt = leaving
		}
	}
	for i, e := range list {
		r := g.records[e.ID]
		if r == nil {
			// One allocation each: in a slab, the runtime's header would shift the
			// records off their cache lines.
			g.serial++
			r = &Record{id: e.ID, shared: g.shared, serial: g.serial}
			r.lastDone.Store(now)
			if g.shared.median.Load() != ewma.NoTarget {
				r.marks.Store(markLate)
			}
			g.records[e.ID] = r
		}
		if r.removedAt > 0 {
			r.marks.And(^uint32(markApart)) // until somebody says otherwise
		}
		r.removedAt = 0
		m.records[i] = r
		m.weights[i] = e.Weight.Value()
	}
	for _, r := range g.records {
		if r.removedAt == leaving {
			r.removedAt = max(now, 1)
			r.mark(markApart)
			r.mark(markAway)
			r.EndEjection()
		}
	}
	m.prepareWeights()
	return m, nil
}

// prepareWeights applies the rule for lists in which every weight is 0, and takes
// logarithms if weights differ.
func (m *Members) prepareWeights() {
	first, differ := 0.0, false
	for _, w := range m.weights {
		switch {
		case w == 0:
		case first == 0:
			first = w
		default:
			differ = differ || w != first
		}
	}
	if first == 0 && len(m.weights) > 0 {
		m.allDrained = true
		for i := range m.weights {
			m.weights[i] = 1
		}
	}
	if !differ {
		return
	}
	m.lgWeights = make([]int64, len(m.weights))
	for i, w := range m.weights {
		if w > 0 {
			m.lgWeights[i] = weightLog2(w)
		}
	}
}

// Len returns the number of members, available or not.
func (m *Members) Len() int { return len(m.records) }

// Endpoint returns member i as it was given.
func (m *Members) Endpoint(i int) Endpoint { return m.endpoints[i] }

// Record returns the record of member i.
func (m *Members) Record(i int) *Record { return m.records[i] }

// Weight returns the weight in force of member i: 0 when it is drained, 1 for all
// when every weight of the list is 0.
func (m *Members) Weight(i int) float64 { return m.weights[i] }

// WeightsDiffer reports whether two members that are not drained have different
// weights.
func (m *Members) WeightsDiffer() bool { return m.lgWeights != nil }

// AllDrained reports that every weight of the list is 0. Such a list is used as if
// all were equal, since a list that drains everything is a mistake more often
// than a wish; an owner should show it.
func (m *Members) AllDrained() bool { return m.allDrained }

// MedianLatency returns the median latency over the endpoints that have samples, as of
// the last sweep; ok is false before the first.
func (m *Members) MedianLatency() (d time.Duration, ok bool) {
	lg := m.shared.median.Load()
	if lg == ewma.NoTarget {
		return 0, false
	}
	return time.Duration(math.Round(ewma.Exp2(lg))), true
}

// Uint64 returns a random number from the injected source.
func (m *Members) Uint64() uint64 { return m.shared.uint64() }
