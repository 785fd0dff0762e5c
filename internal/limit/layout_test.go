package limit

import (
	"testing"
	"unsafe"
)

// What one processor writes on each request lies on no line that another reads or writes.
func TestStripesHaveTheirOwnLines(t *testing.T) {
	for name, size := range map[string]uintptr{
		"stripe": unsafe.Sizeof(stripe{}), "deposits": unsafe.Sizeof(deposits{}), "gauge": unsafe.Sizeof(gauge{}),
	} {
		if size%lineBytes != 0 {
			t.Errorf("a %s has %d bytes, want a multiple of %d", name, size, lineBytes)
		}
	}
	var l Limiter
	if gap := unsafe.Offsetof(l.aimd) - unsafe.Offsetof(l.tokens) - unsafe.Sizeof(l.tokens); gap < lineBytes {
		t.Errorf("%d bytes between what requests read and what the sweep writes", gap)
	}
	var g ledger
	if gap := unsafe.Offsetof(g.granted) - unsafe.Offsetof(g.parts) - unsafe.Sizeof(g.parts); gap < lineBytes {
		t.Errorf("%d bytes between what requests read and what grants write", gap)
	}
	var b Budget
	if gap := unsafe.Offsetof(b.open) - unsafe.Offsetof(b.inFlight) - unsafe.Sizeof(b.inFlight); gap < lineBytes {
		t.Errorf("%d bytes between what requests read and what grants write", gap)
	}
}

func TestStripesAreAPowerOfTwo(t *testing.T) {
	if n := stripeCount(); n < 1 || n > maxStripes || n&(n-1) != 0 {
		t.Errorf("%d stripes", n)
	}
}
