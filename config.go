package evenkeel

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/internal/limit"
	"github.com/evenkeel/evenkeel/outlier"
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
	// Load is what an endpoint reports about itself; see [picker.Load].
	Load = picker.Load
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

	// Outlier says which endpoints get no requests for a while because of how their
	// requests ended, and when so many are out that the verdicts are not believed; see
	// package outlier. nil means [outlier.Soft] with its defaults for policies that learn
	// nothing of failures (those that rotate, draw, hash, or go by requests in flight), and
	// [outlier.NoEjection] for those that do (picker.NeedSuccess), the default among them:
	// they turn away from whoever fails by themselves, after fewer failures, and look at it again at
	// less cost. &outlier.Config{} is Soft for any policy.
	Outlier *outlier.Config

	// Health has the adapters check the endpoints that they use. nil means no checks. A Pool
	// does not look at it: whoever checks tells the results with [Pool.SetStates].
	Health *HealthConfig

	// SlowStart has endpoints that join, or come back, take up their share slowly, with any policy. nil means
	// off, as in Envoy: ejected endpoints come back by Outlier.Ramp alone, and of newcomers a policy takes care that
	// learns of them, as the default one does.
	SlowStart *SlowStart

	// DrainTimeout is how long requests may go on at an endpoint that left the list, lost its
	// place in the subset, or was drained, until the adapter closes its connections under them, 0 to 24 h. 0 means
	// as long as they take. A Pool does not look at it, and gRPC ends its streams itself.
	DrainTimeout time.Duration

	// Limit bounds the requests that this client has in flight while its deadlines are
	// missed. The zero value is on.
	Limit LimitConfig

	// Reports says what is made of the load reports (ORCA) that endpoints send. nil: they are
	// read where the policy goes by them, and weights are those of the list.
	Reports *ReportsConfig
}

// LimitConfig says how the requests in flight of a pool are limited. There is no limit until
// there is distress: more than a twentieth of the requests of a window, three at least, time
// out or use most of their time. Then it begins at what is in flight, with room to spare if answers came at once or
// nobody took their times, follows what is answered
// in time, and goes when it has not mattered for ten seconds. Requests of kind Stream are not
// counted. A request beyond it goes to an endpoint that is ejected, or has just come back, and has none in flight, if
// there is one, and is refused with [ErrOverloaded] otherwise. While there is a limit, endpoints that come back do so at once, without
// a ramp. Deadlines are known by [Pick.SetDeadline], and
// timeouts by [Result]. It needs [Pool.Sweep].
type LimitConfig struct {
	// Disabled switches it off.
	Disabled bool
	// Floor is what the limit never falls below. 0 means 2; at most 2^30.
	Floor int
	// Ceiling is what the limit never rises above once it exists, and not a limit of its own
	// without distress. 0 means none; otherwise at least Floor and at most 2^30.
	Ceiling int
	// PerEndpoint is how many requests of this client one endpoint has in flight at most, on good
	// days too and with Disabled; 0 means any number, at most 2^30. It is exact. As with Envoy's circuit
	// breakers, requests of kind Stream count, until they end. A request for an endpoint that is full
	// goes to another: the next candidate of its key, or the policy's choice among the others; and is
	// refused with [ErrOverloaded], an [OverloadError] of an Endpoint, if all are full. Those
	// that began while it was 0 do not count; after a change to less, those beyond it
	// end as usual. One that is never Done counts until [picker.LeakAfter].
	PerEndpoint int
}

// Validate reports every problem of the configuration, joined; nil if there is none.
func (c LimitConfig) Validate() error {
	return limit.Config(c).ValidateAs("evenkeel: LimitConfig")
}

// defaultFloor lets two requests of a client that sends little be in flight together. A hundred
// clients of a small pool can have two each.
const defaultFloor = 2

// filled returns c with the default floor, if it has none.
func (c LimitConfig) filled() limit.Config {
	if c.Floor == 0 {
		c.Floor = defaultFloor
		if c.Ceiling > 0 {
			c.Floor = min(defaultFloor, c.Ceiling)
		}
	}
	return limit.Config(c)
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
	if c.Outlier != nil {
		problems = append(problems, c.Outlier.Validate())
	}
	if c.Health != nil {
		problems = append(problems, c.Health.Validate())
	}
	if c.SlowStart != nil {
		problems = append(problems, c.SlowStart.Validate())
	}
	problems = append(problems, c.Limit.Validate(), validateDrain(c.DrainTimeout))
	if c.Reports != nil {
		problems = append(problems, c.Reports.Validate(), c.checkReports())
	}
	return errors.Join(problems...)
}

// Equal reports whether c is known to be the same as d, setting by setting. A policy of the caller's own may
// hold what cannot be compared, and is equal to none then.
func (c Config) Equal(d Config) bool {
	return reflect.ValueOf(&c.Policy).Elem().Comparable() && c.Policy == d.Policy &&
		slices.Equal(c.Keys, d.Keys) && sameSubset(c.Subset, d.Subset) && sameOutlier(c.Outlier, d.Outlier) && sameHealth(c.Health, d.Health) && sameSlowStart(c.SlowStart, d.SlowStart) &&
		c.DrainTimeout == d.DrainTimeout && c.Limit == d.Limit &&
		sameReports(c.Reports, d.Reports)
}

func sameSubset(a, b *subset.Config) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// owned returns a copy of which the caller cannot change a part.
func (c Config) owned() Config {
	if c.Outlier != nil {
		own := c.Outlier.Owned()
		c.Outlier = &own
	}
	if c.Health != nil {
		own := c.Health.owned()
		c.Health = &own
	}
	if c.SlowStart != nil {
		own := *c.SlowStart
		c.SlowStart = &own
	}
	if c.Subset != nil {
		own := *c.Subset
		c.Subset = &own
	}
	c.Reports = c.Reports.owned()
	return c
}

func sameOutlier(a, b *outlier.Config) bool {
	return a == b || a != nil && b != nil && a.Equal(*b)
}

// outlier returns the rules of ejection that are meant.
func (c Config) outlier() outlier.Config {
	switch {
	case c.Outlier != nil:
		return *c.Outlier
	case c.seesFailures():
		return outlier.Config{Mode: outlier.NoEjection}
	}
	return outlier.Config{}
}

// seesFailures reports whether the policy turns away from endpoints that fail by itself. What hashes
// does not: only its rule for requests without a key may.
func (c Config) seesFailures() bool {
	_, hashes := c.policy().(picker.Hash)
	return !hashes && c.policy().Needs()&picker.NeedSuccess != 0
}

func (c Config) policy() Policy {
	if c.Policy == nil {
		return picker.Adaptive{}
	}
	return c.Policy
}
