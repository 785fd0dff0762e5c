package picker

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync/atomic"

	"github.com/evenkeel/evenkeel/ewma"
)

// LoadTable is a signal that the caller supplies: loads by endpoint ID, from a shared
// table of any age. Every client that goes by the same table sees the same minimum:
// with [Least] they all go there until the next table (herding), with [P2C] half as
// badly. Set is safe to call at any time. The zero LoadTable knows nobody.
type LoadTable struct {
	costs atomic.Pointer[loadCosts]
}

// loadCosts is one table, in Q16 log2(load + 1). Immutable.
type loadCosts struct {
	byID    map[string]int64
	unknown int64 // the median: absent is unknown, never idle
}

// MaxLoad is the largest load of a LoadTable.
const MaxLoad = 1 << 32

// Set replaces the table. Loads are requests in flight or anything proportional, 0 to
// [MaxLoad]; the map is not kept. On an error, which names every bad load, the
// previous table stays. Endpoints that are not in it cost as much as the median.
func (t *LoadTable) Set(loads map[string]float64) error {
	var problems []error
	for _, id := range slices.Sorted(maps.Keys(loads)) {
		if v := loads[id]; !(v >= 0 && v <= MaxLoad) {
			problems = append(problems, fmt.Errorf("picker: LoadTable: load of %q is %v, want 0 to %v", id, v, float64(MaxLoad)))
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	c := &loadCosts{byID: make(map[string]int64, len(loads))}
	sorted := make([]int64, 0, len(loads))
	for id, v := range loads {
		lg := int64(math.Round(math.Log2(v+1) * ewma.One))
		c.byID[id] = lg
		sorted = append(sorted, lg)
	}
	if len(sorted) > 0 {
		slices.Sort(sorted)
		c.unknown = sorted[(len(sorted)-1)/2]
	}
	t.costs.Store(c)
	return nil
}

// Needs returns 0: the caller learns.
func (t *LoadTable) Needs() Need { return 0 }

// Cost implements Signal.
func (t *LoadTable) Cost(r *Record, _ int64) int64 {
	c := t.costs.Load()
	if c == nil {
		return 0
	}
	if lg, ok := c.byID[r.id]; ok {
		return lg
	}
	return c.unknown
}
