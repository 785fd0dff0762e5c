package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// Policy is how requests find their servers: one of the library's policies, in a pool
// for each balancer; one of them that goes by a shared table; or a bound.
type Policy struct {
	// Name is for reports.
	Name string
	// Config is that of every balancer's pool. The zero Config is the library's default.
	Config evenkeel.Config
	// Table, if not nil, makes the pools' policy, in place of Config's, from a table of all
	// servers' true loads that all balancers share and that is renewed every TableAge; with
	// TableOnDemand, by the first request that finds it so old or older. With an age of 0
	// every request renews it; else it is 1 µs at least.
	Table         func(*picker.LoadTable) evenkeel.Policy
	TableAge      time.Duration
	TableOnDemand bool
	// Bound, if not nil, chooses in place of pools, and sees what no client can.
	Bound Chooser
	// Prime, if not 0, is a latency that every pool learns of every server before the run
	// begins, as some estimators start from a guess.
	Prime time.Duration
}

// Validate reports every problem of the policy, joined.
func (p *Policy) Validate() error {
	var problems []error
	if p.Table != nil && p.Bound != nil {
		problems = append(problems, errors.New("sim: Policy.Table and Bound are set, want at most one"))
	}
	if err := p.Config.Validate(); err != nil {
		problems = append(problems, fmt.Errorf("sim: Policy.Config: %w", err))
	}
	if p.TableAge != 0 {
		problems = append(problems, within("Policy.TableAge", p.TableAge, time.Microsecond, maxDuration))
	}
	problems = append(problems, within("Policy.Prime", p.Prime, 0, time.Hour))
	if seen, ok := p.Bound.(Seen); ok {
		problems = append(problems, within("Policy.Bound.Age", seen.Age, time.Millisecond, time.Minute),
			within("Policy.Bound.Forget", seen.Forget, 1, time.Hour), number("Policy.Bound.Usual", seen.Usual, 0, 1e9))
	}
	if p.Table != nil {
		if err := p.Table(&picker.LoadTable{}).Validate(); err != nil {
			problems = append(problems, fmt.Errorf("sim: Policy.Table: %w", err))
		}
	}
	return errors.Join(problems...)
}

// fits reports what is wrong with the policy in s alone.
func (p *Policy) fits(s *Scenario) error {
	if p.Table == nil || p.TableAge <= 0 || p.TableOnDemand {
		return nil
	}
	return within("Policy.TableAge", p.TableAge, s.Length/MaxUpdates, maxDuration)
}

// Chooser chooses a server for a request with all knowledge of the present. It must not
// keep anything: one Chooser serves several runs at once.
type Chooser interface {
	// Choose returns the index of an available server, of which there is at least one.
	Choose(v *View) int
}

// View is the present state of all servers.
type View struct{ run *run }

// Len returns the number of servers, members or not.
func (v *View) Len() int { return len(v.run.servers) }

// Available reports whether server i may be picked: it is a member, and not drained
// unless all are.
func (v *View) Available(i int) bool {
	s := &v.run.servers[i]
	return s.member && (v.run.clients.allDrained || !s.drained && s.weight.Value() > 0)
}

// Broken reports whether server i hangs or fails all that it gets.
func (v *View) Broken(i int) bool {
	s := &v.run.servers[i]
	return s.hang || s.fail != picker.Unknown && s.failShare == 1
}

// Load returns how many requests server i has at hand or on the way to it.
func (v *View) Load(i int) int { return v.run.servers[i].load }

// MeanService returns how long server i takes for the work of a request whose class has no
// law of its own, on average, as it is now, in nanoseconds.
func (v *View) MeanService(i int) float64 { return v.run.servers[i].meanNow(v.run.now) }

// Uint64 returns a random number.
func (v *View) Uint64() uint64 { return v.run.picks.Uint64() }
