package picker

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
)

// Record is the live state of one endpoint: what is in flight and what was learnt.
// A [Registry] keeps one per ID and gives the same one back for as long as the ID is
// a member (and a while longer), so a Record outlives updates, reconnections and
// changes of policy, and a pointer to it identifies the endpoint.
//
// All methods are safe for concurrent use and cost a few loads; but for RaiseEpoch, EndEjection
// and SetShare they change nothing.
type Record struct {
	// The first cache line holds all that a comparing pick reads. A request is
	// counted either in age, while it ages, or in picks and dones.
	age     ewma.Age      // unary work without a first byte
	picks   atomic.Uint64 // other work, begun
	dones   atomic.Uint64 // other work, ended
	view    atomic.Uint64 // the signal Latency's estimate as of the last result or sweep
	epoch   atomic.Uint32 // ejection epoch; see RaiseEpoch
	marks   atomic.Uint32 // see the constants
	aged    atomic.Uint64 // work in age, ended
	mean    ewma.LogMean
	success ewma.Success

	// Read when a request ends, if a mark says so, or rarely.
	peak       ewma.Peak
	lastDone   atomic.Int64 // instant of the last Done within lastDoneGrain, while markMixed or without samples
	leaked     atomic.Int64 // work no longer believed in flight; markLeaked
	leakBefore atomic.Int64 // work that began earlier is the leaked one; markLeaked
	avoidUntil atomic.Int64 // instant; markAvoided
	rampFrom   atomic.Int64 // instant; markRamp
	streams    atomic.Int64 // picks of kind Stream in flight
	shared     *shared      // set at construction
	reported   reported     // its claims: markReported

	id        string                       // set at construction
	serial    uint32                       // set at construction; no other record has had it
	share     atomic.Uint32                // part of 2^32 of the choices that it takes part in; markShare
	estimator atomic.Pointer[ownEstimator] // the signal's own, if it has any

	// Guarded by the Registry's owner.
	sweptEnded uint64
	sweptPicks uint64
	toldEnded  uint64 // see Registry.Ended
	quietSince int64
	removedAt  int64        // 0: a member; leaving: no longer, see Members
	freshSince int64        // instant of the first sweep that saw markFresh, 0: none has
	traffic    float32      // picks, decayed
	trust      atomic.Int32 // in reports, 0 to trusted; written by the owner
}

const (
	markAnswered = 1 << iota // something came back, good or bad: not on probation
	markMixed                // has had picks of UnknownKind: age is bounded by lastDone
	markLeaked               // leaked and leakBefore count
	markAvoided              // avoidUntil may lie ahead
	markRamp                 // rampFrom may be recent
	markLate                 // joined others that had samples already
	markAway                 // not a member, or not available: see comeBack
	markFresh                // has come, come back or failed mostly of late: see comeBack
	markApart                // not available: its work is not in the pool's total, see totals
	markShare                // share counts
	markEjected              // is ejected: see RaiseEpoch
	markReported             // claims in reported may count
	markDue                  // has had no request for long: wins the next comparison, see lookAgain
	markLooked               // has had one for that reason: an answer replaces what was known
)

// lastDoneGrain is how old lastDone may be: a store on each Done would cost as
// much as the rest of it.
const lastDoneGrain = int64(time.Millisecond)

// ID returns the endpoint's ID.
func (r *Record) ID() string { return r.id }

// InFlight returns the number of requests that were picked and not yet done, without
// those no longer believed (see [Registry.Sweep]).
func (r *Record) InFlight() int64 {
	n := r.open()
	if r.marks.Load()&markLeaked != 0 {
		n = max(n-r.leaked.Load(), 0)
	}
	return n
}

// open returns the number of requests that were picked and not yet done.
func (r *Record) open() int64 { return r.openWith(r.age.Look()) }

// openWith is open for a caller that has looked at age already: before the counters,
// since a first byte moves work from age to picks.
func (r *Record) openWith(aging ewma.AgeView) int64 {
	d := r.dones.Load() // before picks, which can only have grown since
	// Below 0 only after a Done too many, on a copy of a Pick.
	return int64(aging.Count()) + max(int64(r.picks.Load()-d), 0)
}

// ended returns the number of requests that are done.
func (r *Record) ended() uint64 { return r.aged.Load() + r.dones.Load() }

// Picks returns how many requests were ever picked for the endpoint.
func (r *Record) Picks() uint64 { return r.ended() + uint64(r.open()) }

// Streams returns the number of requests of kind Stream in flight.
func (r *Record) Streams() int64 { return r.streams.Load() }

// Leaked returns the number of picks that were never done and are no longer believed
// to be in flight.
func (r *Record) Leaked() int64 { return r.leaked.Load() }

// Epoch returns the ejection epoch. Results of picks of another epoch teach nothing.
func (r *Record) Epoch() uint32 { return r.epoch.Load() }

// RaiseEpoch begins a new ejection epoch: whoever ejects the endpoint calls it, so that requests
// which began before that teach nothing any more. They still leave the in-flight count. Until
// EndEjection it is one of those that fail, of which many make an outage.
func (r *Record) RaiseEpoch() {
	r.epoch.Add(1)
	r.mark(markEjected)
}

// EndEjection says that the endpoint is ejected no more. One that leaves the list is not, either.
func (r *Record) EndEjection() {
	if r.marks.Load()&markEjected != 0 {
		r.marks.And(^uint32(markEjected))
	}
}

// Latency returns the estimate of the signal [Latency] at instant now; ok is false
// before the first sample.
func (r *Record) Latency(now int64) (d time.Duration, ok bool) {
	lg, ok := r.estimate(Latency, now, r.shared.learning.Load())
	if !ok {
		return 0, false
	}
	return time.Duration(math.Round(ewma.Exp2(lg))), true
}

// PeakLatency returns the peak-hold latency at instant now; ok is false before the
// first sample.
func (r *Record) PeakLatency(now int64) (d time.Duration, ok bool) {
	lg, ok := r.peak.Log2(now, r.shared.learning.Load().peak)
	if !ok {
		return 0, false
	}
	return time.Duration(math.Round(ewma.Exp2(lg))), true
}

// LatencyLog2 returns log2 of the estimate in nanoseconds of the signal [Latency] at
// instant now, in Q16, for signals of your own; ok is false before the first sample.
func (r *Record) LatencyLog2(now int64) (lg int64, ok bool) {
	return r.estimate(Latency, now, r.shared.learning.Load())
}

// Success returns the success score at instant now, from 0 to 1 (never failed).
func (r *Record) Success(now int64) float64 {
	return 1 - r.success.Failure(now, r.shared.learning.Load().success)
}

// AgeLog2 returns log2 of the mean age in nanoseconds of unary requests in flight that
// have had no first byte yet, in Q16; ok is false without any. While picks are
// leaked there is none, as it would only ever grow.
func (r *Record) AgeLog2(now int64) (lg int64, ok bool) {
	return r.ageOf(r.age.Look(), r.marks.Load(), now)
}

func (r *Record) ageOf(aging ewma.AgeView, marks uint32, now int64) (lg int64, ok bool) {
	lg, ok = aging.MeanLog2(now)
	if !ok || marks&markLeaked != 0 {
		return 0, false
	}
	if marks&markMixed != 0 {
		lg = min(lg, ewma.LatencyLog2(now-r.lastDone.Load()))
	}
	return lg, true
}

// leaving is removedAt while Members finds out who is left.
const leaving = -1

// member reports whether it is one; for the Registry's owner.
func (r *Record) member() bool { return r.removedAt == 0 }

func (r *Record) mark(m uint32) {
	if r.marks.Load()&m == 0 {
		r.marks.Or(m)
	}
}
