package evenkeel

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// The words of package picker that a Pool's user needs.
type (
	// Endpoint is a member of a pool: its ID and weight.
	Endpoint = picker.Endpoint
	// Weight is a relative capacity: absent means 1, explicit 0 means drained.
	Weight = picker.Weight
	// Request describes one request to the policy.
	Request = picker.Request
	// Result says how a request ended.
	Result = picker.Result
	// Outcome is the kind of end.
	Outcome = picker.Outcome
	// Policy is a way of choosing.
	Policy = picker.Policy
	// Record is the live state of one endpoint.
	Record = picker.Record
)

// WeightOf returns an explicit weight; see [picker.WeightOf].
func WeightOf(v float64) Weight { return picker.WeightOf(v) }

// The outcomes of a request; see [picker.Outcome].
const (
	Unknown   = picker.Unknown
	Success   = picker.Success
	Failure   = picker.Failure
	Unreached = picker.Unreached
	Timeout   = picker.Timeout
	Overload  = picker.Overload
	Canceled  = picker.Canceled
)

// Config says how a pool balances. The zero Config is the documented default. It is
// a value: copy it freely, and do not change what it points to once it is in use.
type Config struct {
	// Policy chooses the endpoint of each request. nil means [picker.Adaptive]: of up to
	// twelve endpoints, or of five drawn, the one with the shortest expected wait by latency,
	// requests in flight and success.
	Policy Policy

	// Keys says where the adapters find a request's affinity key, for policies that use
	// one: of these places, in this order, the first that has one which is not empty. A
	// request without a key is sent as the policy says. nil means the request's context,
	// []Key{{Context: true}}; at most 16. A Pool does not look at it: [Request] has the key.
	Keys []Key

	// Subset makes the pool use a part of the endpoints, this client's; see package subset
	// for when that pays. nil means all of them. The part depends on the IDs of the list, and
	// on weights only with Aperture. While fewer than its MinAvailable are available, others
	// are added: a member is missed when it has not been Ready for half a second, or for three
	// seconds if it was selected that short a time ago and has to be connected to first; one
	// that is drained, at once. Its LoadPerEndpoint is in requests a second: unlike requests
	// in flight, they do not grow when endpoints get slow.
	Subset *subset.Config
}

// Validate reports every problem of the configuration, joined; nil if there is none. It
// does not look up where a subset's index comes from: a pool does, when it gets it.
func (c Config) Validate() error {
	var problems []error
	switch v := reflect.ValueOf(c.Policy); {
	case c.Policy == nil:
	case v.Kind() == reflect.Pointer && v.IsNil():
		problems = append(problems, fmt.Errorf("evenkeel: Config.Policy is a nil %T, want a policy or no value", c.Policy))
	default:
		problems = append(problems, c.Policy.Validate())
	}
	problems = append(problems, validateKeys(c.Keys)...)
	if c.Subset != nil {
		problems = append(problems, c.Subset.Validate())
	}
	return errors.Join(problems...)
}

// equal reports whether c is known to be the same as d. A policy of the caller's own may
// hold what cannot be compared.
func (c Config) equal(d Config) bool {
	return reflect.ValueOf(&c.Policy).Elem().Comparable() && c.Policy == d.Policy &&
		slices.Equal(c.Keys, d.Keys) && sameSubset(c.Subset, d.Subset)
}

func sameSubset(a, b *subset.Config) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// owned returns a copy whose subset the caller cannot change.
func (c Config) owned() Config {
	if c.Subset != nil {
		own := *c.Subset
		c.Subset = &own
	}
	return c
}

func (c Config) policy() Policy {
	if c.Policy == nil {
		return picker.Adaptive{}
	}
	return c.Policy
}
