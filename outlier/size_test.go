package outlier

import (
	"testing"
	"unsafe"
)

// What a result touches is one cache line, and no two hosts share one, nor a pair that
// processors fetch together.
func TestHostFillsWholeCacheLines(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("a matter of 64-bit machines")
	}
	var h Host
	if size := unsafe.Sizeof(h); size%128 != 0 {
		t.Errorf("a Host has %d bytes, want a multiple of 128", size)
	}
	if hot := unsafe.Offsetof(h.ownerPart); hot != 64 {
		t.Errorf("what results touch has %d bytes, want 64", hot)
	}
}
