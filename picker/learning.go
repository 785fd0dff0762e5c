package picker

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
)

// Need says what a policy has to know of an endpoint's past. Nothing else is
// learnt, so that a policy pays for what it uses.
type Need uint8

const (
	// NeedLatency asks for latency samples.
	NeedLatency Need = 1 << iota
	// NeedAge asks for the age of work in flight.
	NeedAge
	// NeedSuccess asks for the success score and for overload hints. Policies that need nothing at all
	// get the latter too.
	NeedSuccess
	// NeedEstimator asks for samples to go to the signal's own [Estimator] too.
	NeedEstimator
	// NeedRamp asks for endpoints that have given their first answer to take up their
	// share slowly.
	NeedRamp
	// NeedMeanPrior asks for the latency assumed of endpoints without samples to be the
	// mean of the others' instead of their median, and a little less for those that join
	// others: more careful with newcomers where some endpoints are much slower than most,
	// and in no doubt about them where all are alike. For a unit after their first answer, or
	// after most of their requests have failed, endpoints then count as no faster than the
	// median while they have requests in flight. And in the comparisons of [Adaptive], one
	// without requests for long gets one.
	NeedMeanPrior
	// needTotal asks for the number of requests in flight on the whole pool.
	needTotal
)

// shared is what all records of a registry have in common.
type shared struct {
	learning atomic.Pointer[learning]
	median   atomic.Int64 // log2 of the pool's median latency in Q16, or ewma.NoTarget
	mean     atomic.Int64 // log2 of the mean latency, as above
	target   atomic.Int64 // log2 of what estimates fade to, as above
	swept    atomic.Int64 // instant of the last sweep
	outage   atomic.Bool  // most endpoints fail, as of the last sweep
	// settled says that sweeps measure the three above. Until everybody has answered, but
	// for no longer than a second after the first answer or for eight picks a member, they
	// are the best answer instead.
	settled     atomic.Bool
	firstSample atomic.Int64  // instant of the first answer
	totals      totalsPointer // for needTotal
	rand        func() uint64 // nil: the runtime's
	clock       func() int64  // nil: none; see Registry.SetClock
}

func (s *shared) uint64() uint64 {
	if s.rand == nil {
		return rand.Uint64()
	}
	return s.rand()
}

// learning is how results are taken in. Immutable once published.
type learning struct {
	needs   Need
	unit    time.Duration
	peak    ewma.Decay
	mean    ewma.LogMeanParams
	success ewma.SuccessParams
	// priorFall is how fast the latency assumed of an endpoint that has not answered
	// falls, so that one that a stale or unlucky prior hides is tried at last.
	priorFall ewma.Decay
	// report is how fast a report ages.
	report ewma.Decay
	// failing is how fast a reported error rate fades.
	failing ewma.Decay
}

// All time constants are multiples of one unit, so that nothing needs tuning between
// services that answer in 0.1 ms and in minutes, or between clients that send much
// and that send little. The unit is at least a second, which bounds how much
// traffic goes into trying endpoints that look bad.
const (
	minUnit = time.Second
	maxUnit = time.Hour
	// Finagle's and Linkerd's default decay is 10 s too.
	peakUnits = 10
	// A result weighs 1 - e^(-Δ/2u); an unused endpoint's failures fade with 10u.
	successAverageUnits = 2
	successFadeUnits    = 10
	// successStep is the least weight of one failure, so that failures show at any
	// rate.
	successStep = 0.1
	// reportedFailureUnits is how long a reported error rate counts.
	reportedFailureUnits = 2
	// fadeUnits is what ewma.LogMean fades with.
	fadeUnits = 60
	// Half an e-fold in 240 units. The faster, the more of those that they begin with do
	// clients that send little try, and the best of more hides newcomers.
	priorFallUnits = 480
)

func newLearning(needs Need, unit, latency time.Duration) *learning {
	return &learning{
		needs:     needs,
		unit:      unit,
		peak:      ewma.NewDecay(peakUnits * unit),
		mean:      ewma.NewLogMeanParams(unit),
		success:   ewma.NewSuccessParams(successAverageUnits*unit, successFadeUnits*unit, successStep),
		priorFall: ewma.NewDecay(priorFallUnits * unit),
		report:    ewma.NewDecay(reportLatencies * latency),
		failing:   ewma.NewDecay(reportedFailureUnits * unit),
	}
}
