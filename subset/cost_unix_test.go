//go:build unix

package subset

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime returns the processor time that this process has used.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// An update of a thousand endpoints is to take 1 ms of processor time, and 20 ms with the
// factors of a thousand clients. Machines differ: it fails at twice that, and the race
// detector takes several times as long.
func TestUpdateIsCheap(t *testing.T) {
	for _, v := range []struct {
		clients int
		most    time.Duration
	}{{0, time.Millisecond}, {1000, 20 * time.Millisecond}} {
		s := newSelector(t, Config{Size: 20, ClientIndex: IndexOf(17), ClientCount: v.clients})
		lists := [2]Members{listOf(everybody(1000)), listOf(everybody(1001)[1:])}
		least := time.Hour
		for range 5 {
			const times = 10
			start := cpuTime(t)
			for i := range times {
				update(t, s, lists[i%2])
			}
			least = min(least, (cpuTime(t)-start)/times)
		}
		t.Logf("an update takes %v with %d clients known, want at most %v", least, v.clients, v.most)
		if bound := 2 * v.most * slowdown; least > bound {
			t.Errorf("an update takes %v with %d clients known, want at most %v", least, v.clients, bound)
		}
	}
}
