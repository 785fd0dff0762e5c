package picker

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/evenkeel/evenkeel/ewma"
)

// Bounds of an explicit, positive weight. The upper one holds every sum of xDS
// weights (uint32); the span keeps costs in range.
const (
	MinWeight = 1e-6
	MaxWeight = 1 << 32
)

// MaxEndpoints is the largest number of members of one list.
const MaxEndpoints = 1 << 24

// Weight is an endpoint's capacity relative to the others'. The zero Weight is
// absent, which counts as 1; an explicit zero (WeightOf(0)) means drained: the
// endpoint stays a member and gets no new requests. The two are never mixed up.
type Weight struct {
	value float64
	set   bool
}

// WeightOf returns an explicit weight. Valid ones are 0 and [MinWeight] to
// [MaxWeight]; others are refused where the endpoint is used, not here.
func WeightOf(v float64) Weight { return Weight{value: v, set: true} }

// Value returns the weight, 1 when it is absent.
func (w Weight) Value() float64 {
	if !w.set {
		return 1
	}
	return w.value
}

// IsSet reports whether the weight was given explicitly.
func (w Weight) IsSet() bool { return w.set }

// String returns the weight as a number, or "absent".
func (w Weight) String() string {
	if !w.set {
		return "absent"
	}
	return strconv.FormatFloat(w.value, 'g', -1, 64)
}

func (w Weight) validate(field string) error {
	v := w.Value()
	if v == 0 || v >= MinWeight && v <= MaxWeight {
		return nil
	}
	return fmt.Errorf("picker: %s is %v, want 0 or %v to %v", field, v, MinWeight, float64(MaxWeight))
}

// Endpoint is a member of a list: what a client may send requests to.
type Endpoint struct {
	// ID is the identity across updates: what was learnt about an ID stays with it.
	// It must not be empty and must be unique within a list. Adapters use the
	// canonical address.
	ID string
	// Weight is the relative capacity. Absent means 1, explicit 0 means drained.
	Weight Weight
}

// maxProblems bounds how many problems of one list are reported in full.
const maxProblems = 16

// Validate reports every problem of a list of endpoints, joined: empty and
// duplicate IDs and weights out of range. After the first 16 only the number of
// further ones is given. An empty list is valid.
func Validate(list []Endpoint) error {
	if len(list) > MaxEndpoints {
		return fmt.Errorf("picker: the list has %d endpoints, want at most %d", len(list), MaxEndpoints)
	}
	var problems []error
	more := 0
	add := func(err error) {
		if len(problems) < maxProblems {
			problems = append(problems, err)
		} else {
			more++
		}
	}
	seen := make(map[string]int, len(list))
	for i, e := range list {
		if e.ID == "" {
			add(fmt.Errorf("picker: endpoint %d: ID is empty, want a unique name", i))
		} else if first, dup := seen[e.ID]; dup {
			add(fmt.Errorf("picker: endpoint %d: ID %q is that of endpoint %d, want a unique name", i, clip(e.ID), first))
		} else {
			seen[e.ID] = i
		}
		if err := e.Weight.validate(fmt.Sprintf("endpoint %d (%q): Weight", i, clip(e.ID))); err != nil {
			add(err)
		}
	}
	if more > 0 {
		problems = append(problems, fmt.Errorf("picker: and %d more problems in the list", more))
	}
	return errors.Join(problems...)
}

// clip shortens an ID for an error text.
func clip(id string) string {
	const most = 100
	if len(id) <= most {
		return id
	}
	return id[:most] + "…"
}

// weightLog2 is log2 of a positive weight in Q16. It uses the table that counts in
// flight use, so that (2 in flight + 1) / 3 and 1 / 1 are a tie.
func weightLog2(w float64) int64 {
	if w < 1 {
		return ewma.Log2(uint64(w*(1<<40))) - 40<<16
	}
	return ewma.Log2(uint64(w*(1<<20))) - 20<<16
}
