package orca

import (
	"math/bits"
	"slices"
	"sync/atomic"
)

const (
	medianBuckets = 64
	medianSamples = 16
	// medianEach is how many new samples make a new median.
	medianEach = 4
)

// medians keeps the latest latencies apart by how many requests were in flight when the request
// began: one median over all would say how long requests took at the loads of the past, not at
// this one.
type medians [medianBuckets]medianBucket

// medianBucket has the samples of one range of numbers in flight.
type medianBucket struct {
	next    atomic.Uint32
	median  atomic.Uint64 // a sample: the median, with the instant it was found
	samples [medianSamples]atomic.Uint64
	_       [112]byte // to a multiple of two cache lines
}

// A sample is a latency in units of 64 ns (36 bits, up to an hour and a quarter) above the
// instant in units of 17 ms (28 bits, 52 days, then from the start again), never 0.
const (
	sampleTimeBits = 28
	sampleTick     = 24
	sampleUnit     = 6
)

func packSample(ns, now int64) uint64 {
	units := min(uint64(max(ns, 1<<sampleUnit))>>sampleUnit, 1<<(64-sampleTimeBits)-1)
	return units<<sampleTimeBits | sampleTime(now)
}

func sampleTime(now int64) uint64 { return uint64(max(now, 0)) >> sampleTick & (1<<sampleTimeBits - 1) }

// sampleFresh reports whether s was taken within window before now. One from a moment later, by
// another goroutine, is.
func sampleFresh(s uint64, now, window int64) bool {
	age := (sampleTime(now) - s) << (64 - sampleTimeBits) >> (64 - sampleTimeBits)
	return s != 0 && (age <= uint64(window)>>sampleTick+1 || age == 1<<sampleTimeBits-1)
}

// bucketOf maps a number in flight to its bucket: one each up to 8, then four to a doubling.
func bucketOf(n int64) int {
	v := uint64(max(n, 0))
	if v < 8 {
		return int(v)
	}
	log := bits.Len64(v) - 1 // at least 3
	return min(8+(log-3)*4+int(v>>(log-2)&3), medianBuckets-1)
}

// add notes the latency of a request that met n others.
func (m *medians) add(n, ns, now, window int64) {
	b := &m[bucketOf(n)]
	i := b.next.Add(1)
	b.samples[i%medianSamples].Store(packSample(ns, now))
	// The first of all at once: a latency is better than none.
	if i%medianEach == 0 || i == 1 {
		b.find(now, window)
	}
}

// find makes the median of the samples within the window.
func (b *medianBucket) find(now, window int64) {
	var fresh [medianSamples]uint64
	n := 0
	for i := range b.samples {
		if s := b.samples[i].Load(); sampleFresh(s, now, window) {
			fresh[n] = s >> sampleTimeBits
			n++
		}
	}
	if n == 0 {
		return
	}
	slices.Sort(fresh[:n])
	b.median.Store(fresh[n/2]<<sampleTimeBits | sampleTime(now))
}

// at returns the median at n in flight, or at the nearest number that has one not older than the
// window.
func (m *medians) at(n, now, window int64) (ns int64, ok bool) {
	own := bucketOf(n)
	for away := range medianBuckets {
		// Below first: there are more samples where fewer are in flight.
		for _, i := range [2]int{own - away, own + away} {
			if i < 0 || i >= medianBuckets {
				continue
			}
			if s := m[i].median.Load(); sampleFresh(s, now, window) {
				return int64(s >> sampleTimeBits << sampleUnit), true
			}
		}
	}
	return 0, false
}
