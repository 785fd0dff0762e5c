package httpclient

import (
	"maps"
	"slices"
	"strings"

	"github.com/evenkeel/evenkeel"
)

// TargetStats is a picture of one target, for people and tests.
type TargetStats struct {
	// Target is the service.
	Target Target
	// Updates is how many lists of addresses were taken over.
	Updates uint64
	// ResolveErrors is how many lookups failed and lists were refused.
	ResolveErrors uint64
	// ResolveError is the last such error, nil once a list was taken over after it.
	ResolveError error
	// Checks is, by endpoint, what its last health check came to, such as "HTTP 503", or that none has
	// ended; nil without checks. Whether the endpoint is in or out for it, its State says.
	Checks map[string]string
	// Replaced is how often the connections of an endpoint were replaced for their age; see Transport.MaxConnAge.
	Replaced uint64
	// ReplaceErrors is how often that failed, so that the old ones stayed.
	ReplaceErrors uint64
	// ReplaceError is the last such error, nil once connections were replaced after it.
	ReplaceError error
	// Healed is how many bodies their callers have dropped; see Transport.HealLeaks.
	Healed uint64
	// Retries is how many tries followed a failed one.
	Retries uint64
	// Hedges is how many tries were made beside another, and HedgesWon how many of them were the answer.
	Hedges, HedgesWon uint64
	// RefusedByBudget is how many retries and hedges there was no budget for.
	RefusedByBudget uint64
	// Stats are those of the endpoints.
	evenkeel.Stats
}

// Snapshot returns a picture of the targets in use, in the order of their names. It
// takes locks and is O(endpoints).
func (t *Transport) Snapshot() []TargetStats {
	f := t.running()
	if f == nil {
		return nil
	}
	var all []TargetStats
	for g := range maps.Values(*f.groups.Load()) {
		all = append(all, g.stats())
	}
	slices.SortFunc(all, func(a, b TargetStats) int {
		return strings.Compare(a.Target.String(), b.Target.String())
	})
	return all
}

func (g *group) stats() TargetStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := TargetStats{
		Target:        g.target,
		Updates:       g.updates,
		ResolveErrors: g.failures,
		ResolveError:  g.lastErr,
		Stats:         g.pool.Stats(),

		Replaced:      g.ages.replaced,
		ReplaceErrors: g.ages.failures,
		ReplaceError:  g.ages.lastErr,

		Healed: g.counts.healed.Load(),

		Retries:         g.counts.retries.Load(),
		Hedges:          g.counts.hedges.Load(),
		HedgesWon:       g.counts.hedgesWon.Load(),
		RefusedByBudget: g.budget.Denied(),
	}
	g.checks.show(&s)
	return s
}
