package httpclient

import (
	"context"
	"errors"
	"fmt"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// MinBackends is a Resolver for services behind few addresses with many machines, as a
// virtual IP has: each address becomes several endpoints, "10.0.0.1:80",
// "10.0.0.1:80#2" and so on, with connections of their own. HTTP/2 would otherwise have one connection, to one machine. It must
// not be changed while it is in use.
//
// The weight of an address is divided among its endpoints. Those that Resolver has given a number itself
// stay as they are.
type MinBackends struct {
	// Resolver finds the addresses. Nil means DNS.
	Resolver Resolver
	// N is how many endpoints there are at least, 1 to 1024, unless the list is empty. Each address becomes as many as
	// the others, so there can be almost twice as many. One that is drained (weight 0) does not count, and stays one.
	N int
}

// Validate reports whether N is in its range, every problem of the Resolver's, and whether m is nil.
func (m *MinBackends) Validate() error {
	if m == nil {
		return errors.New("httpclient: Resolver is a nil *MinBackends, want one with N")
	}
	var problems []error
	if m.N < 1 || m.N > maxNumber {
		problems = append(problems, fmt.Errorf("httpclient: MinBackends.N is %d, want 1 to %d", m.N, maxNumber))
	}
	if v, ok := m.Resolver.(validator); ok {
		problems = append(problems, v.Validate())
	}
	return errors.Join(problems...)
}

// Watch watches Resolver.
func (m *MinBackends) Watch(ctx context.Context, target Target, sink Sink) error {
	if err := m.Validate(); err != nil {
		return err
	}
	var r Resolver = &DNS{}
	if m.Resolver != nil {
		r = m.Resolver
	}
	return r.Watch(ctx, target, minSink{sink, m.N})
}

// minSink makes several endpoints of each address on the way.
type minSink struct {
	Sink
	n int
}

// Update passes the longer list on.
func (s minSink) Update(list []Address) error { return s.Sink.Update(multiplied(list, s.n)) }

// multiplied returns list with as many endpoints for each address as it takes to have n.
func multiplied(list []Address, n int) []Address {
	plain, used := 0, 0 // addresses without a number, and those of them that are not drained
	for _, a := range list {
		if hasNumber(a) {
			n-- // it is an endpoint already
			continue
		}
		plain++
		if a.Weight != drained {
			used++
		}
	}
	lastResort := used == 0 // if all are 0, all count as equal
	if lastResort {
		used = plain
	}
	times := (n + used - 1) / max(used, 1)
	if times <= 1 {
		return list
	}
	longer := make([]Address, 0, len(list)+used*times)
	for _, a := range list {
		if hasNumber(a) || a.Weight == drained && !lastResort {
			longer = append(longer, a)
			continue
		}
		a.Weight = divided(a.Weight, times)
		longer = append(longer, a)
		for i := 2; i <= times; i++ {
			longer = append(longer, Address{Addr: numbered(a.Addr, i), Weight: a.Weight})
		}
	}
	return longer
}

var drained = evenkeel.WeightOf(0)

func hasNumber(a Address) bool {
	_, number := cutNumber(a.Addr)
	return number != ""
}

// divided returns the nth part of a weight. What is out of range stays so, to be refused.
func divided(w evenkeel.Weight, n int) evenkeel.Weight {
	v := w.Value()
	if !(v >= picker.MinWeight && v <= picker.MaxWeight) {
		return w
	}
	return evenkeel.WeightOf(max(v/float64(n), picker.MinWeight))
}
