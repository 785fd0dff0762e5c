package limit

import (
	"math/bits"
	"runtime"
	"unsafe"
)

// lineBytes is what one stripe is padded to: two cache lines, since processors fetch
// them in pairs.
const lineBytes = 128

// maxStripes bounds what a sum over all stripes costs.
const maxStripes = 64

// stripeCount returns the number of stripes for this process: a power of two, at least
// one for each processor that Go uses, up to maxStripes.
func stripeCount() int {
	n := min(runtime.GOMAXPROCS(0), maxStripes)
	return 1 << bits.Len(uint(n-1))
}

// Lane returns the number by which stripes are chosen here, for counters of other packages.
func Lane() uint32 { return stripeHint() }

// stripeHint returns a number that is mostly the same for one goroutine, and mostly
// another for a goroutine that runs beside it: a hash of where its stack lies. Go does
// not tell on which processor one runs; but stacks of goroutines that end are used again
// by the same processor, so that stripes stay close to it with short goroutines too.
// Where two do meet in one stripe they share its line and nothing else happens.
func stripeHint() uint32 {
	var here byte
	// The smallest stack has 2 KiB: what is below tells frames apart, not goroutines.
	return uint32(uintptr(unsafe.Pointer(&here))>>11) * 0x9e3779b1 >> 16
}
