package limit

import (
	"sync/atomic"
	"time"
)

// ledger holds the requests of the window and the grants that were made in it.
type ledger struct {
	// Read by every request, written once in a slice.
	slice  int64        // length in ns; set at construction
	latest atomic.Int64 // number of the latest slice
	parts  []deposits   // a power of two of them; set at construction
	_      [lineBytes]byte

	// Written by grants.
	granted atomic.Uint64 // ever
	begins  ring          // what granted was when the slice began; none for slices without grants
	refunds ring          // grants that were given back, by the slice that they were made in
}

// deposits is one stripe of the requests of each slice.
type deposits struct {
	requests ring
	_        [lineBytes]byte
}

func newLedger(window time.Duration) *ledger {
	return &ledger{slice: int64(window) / slices, parts: make([]deposits, stripeCount())}
}

// sliceAt returns the number of the slice at instant now, or of the latest that was seen.
// Numbers begin at 1: 0 is that of every slot which was never used.
func (l *ledger) sliceAt(now int64) int64 {
	n := max(now, 0)/l.slice + 1
	for {
		latest := l.latest.Load()
		if latest >= n {
			return latest
		}
		if l.latest.CompareAndSwap(latest, n) {
			return n
		}
	}
}

// deposit counts a request.
func (l *ledger) deposit(now int64) {
	l.parts[int(stripeHint())&(len(l.parts)-1)].requests.add(l.sliceAt(now), 1)
}

// requests returns how many requests began in the window that ends with slice.
func (l *ledger) requests(slice int64) (n int64) {
	for i := range l.parts {
		n += int64(l.parts[i].requests.sum(slice))
	}
	return n
}

// spent returns how many of granted lie in the window that ends with slice and were not given
// back. Every grant of a slice comes after that slice's number in begins, so that the least
// of the window is what was granted before it. (The first is not always the least:
// who is late for a slice without grants stores a number for it that is too high.)
func (l *ledger) spent(granted uint64, slice int64) int64 {
	most := uint64(0)
	for s := slice - slices + 1; s <= slice; s++ {
		if before, ok := l.begins.number(s); ok {
			most = max(most, (granted-before)&numberMask)
		}
	}
	return max(int64(most)-int64(l.refunds.sum(slice)), 0)
}

// left returns what may be granted in the window that ends with slice, in thousandths.
func (l *ledger) left(slice int64, t *terms) int64 {
	return t.reserve + l.requests(slice)*t.deposit - l.spent(l.granted.Load(), slice)*milli
}

// withdraw takes one grant out of the window that ends with slice, or with the latest, and
// returns the slice that it counts in. That granted has not changed since it was compared
// makes the comparison hold: requests and refunds only add within a slice, and a window
// that moves on only forgets grants that were compared.
func (l *ledger) withdraw(slice int64, t *terms) (in int64, ok bool) {
	for {
		slice = max(slice, l.latest.Load())
		l.begins.begin(slice, l.granted.Load)
		granted := l.granted.Load()
		// The requests are added up only if the reserve is not enough.
		if spent := (l.spent(granted, slice) + 1) * milli; spent > t.reserve && spent > t.reserve+l.requests(slice)*t.deposit {
			return 0, false
		}
		if l.granted.CompareAndSwap(granted, granted+1) {
			return slice, true
		}
	}
}
