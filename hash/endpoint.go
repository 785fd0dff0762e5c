package hash

import (
	"errors"
	"fmt"
)

// Bounds of a positive weight, the same as those of package picker.
const (
	MinWeight = 1e-6
	MaxWeight = 1 << 32
)

// MaxEndpoints is the largest number of endpoints of one list.
const MaxEndpoints = 1 << 24

// ErrEmpty says that a table was asked for over nobody: the list is empty, or every weight
// in it is 0. It is an error of building, so that no lookup ever has to fail.
var ErrEmpty = errors.New("hash: no endpoint has a weight above 0")

// Endpoint is a member of the list that a table is built for.
type Endpoint struct {
	// ID is what is hashed: a stable identity, which need not be an address. An endpoint
	// that comes back under another address and the same ID gets its keys back. It must not
	// be empty, and must be unique unless duplicates are merged. Its bytes are compared as
	// they are: two spellings of one address are two endpoints.
	ID string
	// Weight is the capacity relative to the others': the share of keys. 0 means drained:
	// no keys, never a candidate. Other values are [MinWeight] to [MaxWeight]; tables keep
	// them in units of 2^-30.
	Weight float64
}

// maxProblems bounds how many problems of one list are reported in full.
const maxProblems = 16

// problems collects what is wrong with a list, the first few in full.
type problems struct {
	list []error
	more int
}

func (p *problems) add(format string, args ...any) {
	if len(p.list) == maxProblems {
		p.more++
		return
	}
	p.list = append(p.list, fmt.Errorf("hash: "+format, args...))
}

// err returns the problems joined, nil if there are none.
func (p *problems) err() error {
	if p.more > 0 {
		return errors.Join(append(p.list, fmt.Errorf("hash: and %d more problems in the list", p.more))...)
	}
	return errors.Join(p.list...)
}

// clip shortens an ID for an error text.
func clip(id string) string {
	const most = 100
	if len(id) <= most {
		return id
	}
	return id[:most] + "…"
}
