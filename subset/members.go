package subset

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Members is the list of which a client takes a part. No function changes it or keeps it.
// The order of the list does not matter to who is chosen.
type Members struct {
	// IDs are the identities of the endpoints: not empty, and each only once.
	IDs []string
	// Weights are the endpoints' relative capacities, one for each ID, finite and not
	// negative; nil means that they are alike. [Rendezvous] chooses in proportion to them
	// and [Aperture] gives them that much of its ring; the others choose without them,
	// and a weight that changes moves nothing there.
	Weights []float64
	// Ordinals are the endpoints' own indices, one for each ID, each only once and below 2^24,
	// that stay the same as long as the endpoint lives: [Rocksteadier] needs them. nil
	// means that there are none. The other algorithms do not look at them.
	Ordinals []int
}

// Client says which of the clients of a deployment this one is. All clients that are to share
// endpoints evenly have the same Seed and different indices.
type Client struct {
	// Index is the client's own, from 0, without big gaps between clients. [Rendezvous]
	// does not look at it.
	Index int
	// Count is the number of clients, above every Index; 0 means that it is not known,
	// which [Aperture] and [LoadWeights] refuse. The others only check the index against it.
	Count int
	// Seed is for [Rendezvous] the identity, different for each client (see [Identity]). For
	// the others it is the deployment's, and the same for all of its clients.
	Seed uint64
}

// Bounds of what is accepted: far above any fleet, and low enough that nothing overflows.
const (
	MaxMembers = 1 << 24
	MaxClients = 1 << 24
)

// maxProblems bounds how many problems of one list are told in full.
const maxProblems = 16

func (c Client) validate() error {
	var problems []error
	if c.Index < 0 || c.Index >= MaxClients {
		problems = append(problems, fmt.Errorf("subset: Client.Index is %d, want 0 to %d", c.Index, MaxClients-1))
	}
	if c.Count < 0 || c.Count > MaxClients {
		problems = append(problems, fmt.Errorf("subset: Client.Count is %d, want 1 to %d, or 0 if it is not known", c.Count, MaxClients))
	} else if c.Count > 0 && c.Index >= c.Count {
		problems = append(problems, fmt.Errorf("subset: Client.Index is %d, want less than Client.Count, %d", c.Index, c.Count))
	}
	return errors.Join(problems...)
}

// Validate reports every problem of the list, joined: empty and repeated IDs, weights and
// ordinals out of range or of another number than the IDs. After the first 16 only the
// number of further ones is given. An empty list is valid.
func (m Members) Validate() error {
	if len(m.IDs) > MaxMembers {
		return fmt.Errorf("subset: the list has %d members, want at most %d", len(m.IDs), MaxMembers)
	}
	var p problemList
	m.checkIDs(&p)
	if m.Weights != nil && len(m.Weights) != len(m.IDs) {
		p.add("subset: Members.Weights has %d values, want one for each of %d IDs", len(m.Weights), len(m.IDs))
	}
	for i, w := range m.Weights {
		if !(w >= 0) || math.IsInf(w, 1) {
			p.add("subset: Members.Weights[%d] is %v, want a finite number from 0", i, w)
		}
	}
	if m.Ordinals != nil {
		m.checkOrdinals(&p)
	}
	return p.join()
}

func (m Members) checkIDs(p *problemList) {
	seen := make(map[string]int, len(m.IDs))
	for i, id := range m.IDs {
		if id == "" {
			p.add("subset: Members.IDs[%d] is empty, want a unique name", i)
			continue
		}
		if first, dup := seen[id]; dup {
			p.add("subset: Members.IDs[%d] is %q as Members.IDs[%d] is, want a unique name", i, clip(id), first)
			continue
		}
		seen[id] = i
	}
}

func (m Members) checkOrdinals(p *problemList) {
	if len(m.Ordinals) != len(m.IDs) {
		p.add("subset: Members.Ordinals has %d values, want one for each of %d IDs", len(m.Ordinals), len(m.IDs))
	}
	seen := make(map[int]int, len(m.Ordinals))
	for i, o := range m.Ordinals {
		if o < 0 || o >= MaxMembers {
			p.add("subset: Members.Ordinals[%d] is %d, want 0 to %d", i, o, MaxMembers-1)
		} else if first, dup := seen[o]; dup {
			p.add("subset: Members.Ordinals[%d] is %d as Members.Ordinals[%d] is, want each only once", i, o, first)
		} else {
			seen[o] = i
		}
	}
}

// problemList collects errors up to a bound.
type problemList struct {
	problems []error
	more     int
}

func (p *problemList) add(format string, a ...any) {
	if len(p.problems) < maxProblems {
		p.problems = append(p.problems, fmt.Errorf(format, a...))
	} else {
		p.more++
	}
}

func (p *problemList) join() error {
	if p.more > 0 {
		p.problems = append(p.problems, fmt.Errorf("subset: and %d more problems", p.more))
	}
	return errors.Join(p.problems...)
}

// clip shortens an ID for an error text.
func clip(id string) string {
	const most = 100
	if len(id) <= most {
		return id
	}
	return id[:most] + "…"
}

// DefaultSize is what a size of 0 means: large enough that five draws of it differ, and
// that a slow endpoint is a twentieth of what a client sees.
const DefaultSize = 20

// sized returns the size that is meant, not above n.
func sized(size, n int) (int, error) {
	if size < 0 {
		return 0, fmt.Errorf("subset: size is %d, want at least 1, or 0 for %d", size, DefaultSize)
	}
	if size == 0 {
		size = DefaultSize
	}
	return min(size, n), nil
}

// check validates all arguments that algorithms share and returns the size.
func check(c Client, m Members, size int) (int, error) {
	k, err := sized(size, len(m.IDs))
	return k, errors.Join(c.validate(), m.Validate(), err)
}

// everybody returns 0 to n-1.
func everybody(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// byName returns the indices in the order of the IDs, which all clients agree on whatever
// order their lists have.
func (m Members) byName() []int {
	order := everybody(len(m.IDs))
	slices.SortFunc(order, func(a, b int) int {
		if m.IDs[a] < m.IDs[b] {
			return -1
		}
		return 1 // never equal
	})
	return order
}
