package ewma

import (
	"math/bits"
	"time"
)

// MaxGap is the longest gap between two instants that counts; longer ones, from a
// machine that slept or an endpoint that nobody used, count as MaxGap. For time
// constants above MaxGap/20 the limit is 20 time constants, after which nothing is left
// anyway: an hour would stop such a decay half-way.
const MaxGap = time.Hour

// gapTaus is the limit in time constants.
const gapTaus = 20

// tick is the resolution of stored instants in nanoseconds, as a shift.
const tickBits = 10

// maxTicks is the last instant that fits the 48 bits of a stored one: nine years.
const maxTicks = 1<<48 - 1

// maxGapFor returns the limit of gaps for a time constant of tau nanoseconds.
func maxGapFor(tau float64) int64 {
	return int64(min(max(float64(MaxGap), gapTaus*tau), 1<<62))
}

// MinTau is the shortest time constant; [NewDecay] raises shorter ones to it.
const MinTau = 100 * time.Microsecond

// Decay is an exponential decay e^(-t/τ) in the form that reads need: a slope in
// the log domain. The zero Decay never decays. It is a value; copy it freely.
type Decay struct {
	// rate is the loss in Q16 bits per tick, with 48 fractional bits.
	rate uint64
	// most is the longest gap that counts, in ticks.
	most int64
}

// NewDecay returns the decay with time constant tau (the time in which a value
// falls to 1/e). A tau of 0 or less gives the zero Decay, which never decays; a
// positive one below [MinTau] counts as MinTau.
func NewDecay(tau time.Duration) Decay {
	if tau <= 0 {
		return Decay{}
	}
	tau = max(tau, MinTau)
	const perTau = 65536 / 0.6931471805599453 // Q16 bits in one e-fold
	ticks := float64(tau) / (1 << tickBits)
	return Decay{rate: uint64(perTau / ticks * (1 << 48)), most: maxGapFor(float64(tau)) >> tickBits}
}

// loss returns what a value loses in gap ticks, in Q16 bits; nothing in a negative gap.
func (d Decay) loss(gap int64) int64 {
	hi, lo := bits.Mul64(uint64(min(max(gap, 0), d.most)), d.rate)
	return int64(hi<<16 | lo>>48)
}

// Loss returns log2 of the factor by which a value falls in gap nanoseconds, in Q16.
// Negative gaps count as 0 and long ones as [MaxGap] says.
func (d Decay) Loss(gap int64) int64 { return d.loss(gap >> tickBits) }

// Left returns what is left of x >= 0 after gap nanoseconds.
func (d Decay) Left(x, gap int64) int64 {
	hi, lo := bits.Mul64(uint64(max(x, 0)), exp2Neg(d.Loss(gap)))
	return int64(hi<<32 | lo>>32)
}

// ticksOf converts an instant to ticks, within what a stored instant can hold.
func ticksOf(now int64) int64 { return min(max(now, 0)>>tickBits, maxTicks) }
