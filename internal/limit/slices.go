package limit

import "sync/atomic"

// A window is the last ten slices of time, the one that runs included.
const (
	slices = 10
	// ringSlots is more than slices, so that who is late for one finds its slot still.
	ringSlots = 16
)

// Layout of a slot: which slice it belongs to above a number, 32 bits each. A slot that
// nobody touches is taken for another slice's after 2^32 slices: 13 years of the shortest.
const (
	numberBits = 32
	numberMask = 1<<numberBits - 1
	// aheadMost is how many slices a slot may be ahead of who looks at it; more is long ago.
	aheadMost = 1 << 20
)

func packSlot(slice int64, number uint64) uint64 {
	return uint64(slice)<<numberBits | number&numberMask
}

// belongs says how a slot's word lies to a slice: in it, or ahead of it.
func belongs(w uint64, slice int64) (in, ahead bool) {
	behind := uint32(slice) - uint32(w>>numberBits)
	return behind == 0, -behind < aheadMost
}

// ring holds one number for each of the last slices.
type ring [ringSlots]atomic.Uint64

func (r *ring) slot(slice int64) *atomic.Uint64 { return &r[uint64(slice)%ringSlots] }

// number returns what is stored for the slice; ok is false if nothing is.
func (r *ring) number(slice int64) (n uint64, ok bool) {
	w := r.slot(slice).Load()
	ok, _ = belongs(w, slice)
	return w & numberMask, ok
}

// add adds n to the slice's number, which begins at 0. It returns false, and adds nothing,
// if the slot belongs to a later slice already.
func (r *ring) add(slice int64, n uint64) bool {
	s := r.slot(slice)
	for {
		w := s.Load()
		switch in, ahead := belongs(w, slice); {
		case in:
			// Should the slot change hands in between, n counts in a later slice.
			s.Add(n)
			return true
		case ahead:
			return false
		}
		if s.CompareAndSwap(w, packSlot(slice, n)) {
			return true
		}
	}
}

// begin stores n for the slice unless something is stored for it or a later one.
func (r *ring) begin(slice int64, n func() uint64) {
	s := r.slot(slice)
	for {
		w := s.Load()
		if in, ahead := belongs(w, slice); in || ahead {
			return
		}
		// n is read after the slot: if anybody begins the slice meanwhile, this fails.
		if s.CompareAndSwap(w, packSlot(slice, n())) {
			return
		}
	}
}

// sum adds up the window that ends with the slice.
func (r *ring) sum(slice int64) (n uint64) {
	for s := slice - slices + 1; s <= slice; s++ {
		if v, ok := r.number(s); ok {
			n += v
		}
	}
	return n
}
