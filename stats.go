package evenkeel

import (
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// Stats is a picture of a pool, for people and tests.
type Stats struct {
	// Endpoints are the members in the order of the list: all of it, or the client's subset.
	Endpoints []EndpointStats
	// Listed is the number of endpoints in the list.
	Listed int
	// Ready is the number of members that may be picked.
	Ready int
	// MedianLatency is that of the endpoints with samples, 0 before the first sweep.
	MedianLatency time.Duration
	// Ejected is the number of members that are ejected.
	Ejected int
	// Panicking says that so few are available that verdicts are not believed.
	Panicking bool
	// Limit is how many requests may be in flight, 0 while there is no limit.
	Limit int
	// Refused is how many requests found no place within the limit; some of them were sent to
	// ejected endpoints.
	Refused uint64
	// Overflowed is how many such requests are in flight.
	Overflowed int64
	// Full is how many requests were refused because every endpoint had as many in flight as
	// [LimitConfig].PerEndpoint allows.
	Full uint64
	// AllDrained says that every weight is 0, so all are treated as equal.
	AllDrained bool
	// LateSweeps counts sweeps that a pick had to do.
	LateSweeps uint64
	// Reports counts load reports that could be read, where anything is made of them: see [Config.UsesReports].
	Reports uint64
	// UsedReports counts those of them that are weights, by [ReportsConfig].Weights.
	UsedReports uint64
	// UnusableReports counts those of them that could not be weights: they have no rate (QPS), or none of the
	// utilizations that [ReportsConfig].Weight goes by, or numbers that cannot be.
	UnusableReports uint64
	// BadReports counts load reports that could not be read.
	BadReports uint64
	// BadReport says what was wrong with the last of them; nil if there was none.
	BadReport error
	// Warnings are what is allowed and may not be what is meant, as of the last update, change
	// of configuration or sweep: those of [subset.Selector.Warnings], and weights from reports that the policy does
	// not look at. nil if there are none.
	Warnings []string
}

// EndpointStats is a picture of one endpoint.
type EndpointStats struct {
	// ID is the endpoint's identity.
	ID string
	// Weight is the weight in force.
	Weight float64
	// Reporting says that its own reports are what its weight goes by: they have come, could be used, and count by
	// now (see [orca.WeightConfig].Blackout, Expiry). While weights are reported and they do not, it has the median.
	Reporting bool
	// State is the worst that anybody said; see [Source].
	State State
	// Source is who said so first among equals, Connection for Ready.
	Source Source
	// Available says that it may be picked.
	Available bool
	// Ejection is what its results have come to.
	Ejection outlier.HostStats
	// Picks is how many requests it ever got.
	Picks uint64
	// InFlight is how many of them are open.
	InFlight int64
	// Full is how many requests found that it had as many in flight as [LimitConfig].PerEndpoint
	// allows, and went elsewhere or nowhere.
	Full uint64
	// Leaked is how many were never Done and are no longer believed.
	Leaked int64
	// Latency is the current estimate; 0 if none is known, or the policy needs none.
	Latency time.Duration
	// Success is the success score from 0 to 1.
	Success float64
	// Share is the part of its usual requests that it gets: 1, or less while it is on its way back; see
	// [SlowStart] and [outlier.Ramp].
	Share float64
	// Avoided is for how much longer it asked not to be used.
	Avoided time.Duration
}

func (e *EndpointStats) ejected() bool {
	return e.Ejection.State == outlier.Ejected || e.Ejection.State == outlier.Probing
}

// Reasons says in words why the endpoint gets no requests, or fewer, as "ejected: consecutive
// failures"; nil if there is no reason. Some may be picked all the same, in a panic.
func (e EndpointStats) Reasons() (list []string) {
	if e.State != Ready {
		list = append(list, e.State.String()+" ("+e.Source.String()+")")
	}
	if e.Weight == 0 {
		list = append(list, "weight 0")
	}
	switch e.Ejection.State {
	case outlier.Ejected, outlier.Probing:
		list = append(list, e.Ejection.State.String()+": "+e.Ejection.Reason.String())
	case outlier.Ramping:
		list = append(list, e.Ejection.State.String())
	}
	if e.Ejection.SlowStart && e.Share < 1 {
		list = append(list, "slow start")
	}
	return list
}

// Stats returns a picture of the pool now. It is O(n) and takes the lock.
func (p *Pool[T]) Stats() Stats { return p.StatsAt(time.Now()) }

// StatsAt is Stats at instant t.
func (p *Pool[T]) StatsAt(t time.Time) Stats {
	h := p.home
	h.mu.Lock()
	defer h.mu.Unlock()
	now, v := p.instant(t), p.view.Load()
	s := Stats{
		Listed:     len(p.listed),
		Ready:      v.snapshot.Len(),
		Panicking:  v.panicking,
		AllDrained: h.members.AllDrained(),
		LateSweeps: h.lateSweeps.Load(),
		Warnings:   slices.Clone(h.warnings),
	}
	h.countReports(&s)
	s.Limit, _ = h.limiter.Limit()
	s.Refused, s.Overflowed = h.limiter.Refused(), h.limiter.Beyond()
	s.Full = h.caps.refused.Load()
	s.MedianLatency, _ = h.members.MedianLatency()
	s.Endpoints = make([]EndpointStats, p.counted())
	for k := range s.Endpoints {
		s.Endpoints[k] = p.endpointStats(k, v.snapshot, now)
		if s.Endpoints[k].ejected() {
			s.Ejected++
		}
	}
	return s
}

// counted is how many members there are: of a branch, those of its own. mu is held.
func (p *Pool[T]) counted() int {
	if p.branch != nil {
		return len(p.listed)
	}
	return p.members.Len()
}

// endpointStats returns a picture of member k. mu is held.
func (p *Pool[T]) endpointStats(k int, snapshot *picker.Snapshot, now int64) EndpointStats {
	h, e := p.home, p.member(k)
	i := k
	if p.branch != nil {
		i = p.branch.at[k]
	}
	r := h.members.Record(i)
	latency, _ := r.Latency(now)
	state, source := e.worst()
	return EndpointStats{
		ID: r.ID(), Weight: h.members.Weight(i), State: state, Source: source,
		Available: snapshot.Available(i), Ejection: h.detector.Stats(i, now),
		Picks: r.Picks(), InFlight: r.InFlight(), Leaked: r.Leaked(), Full: h.caps.fullAt(r.ID()),
		Latency: latency, Success: r.Success(now), Share: r.Share(), Avoided: r.AvoidFor(now),
		Reporting: h.reporting(i, now),
	}
}
