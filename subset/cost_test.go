package subset

import (
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/internal/testcost"
)

// An update of a thousand endpoints is to take 1 ms of processor time, and 20 ms with the
// factors of a thousand clients. Machines differ: it fails at twice that, and the race
// detector takes several times as long.
func TestUpdateIsCheap(t *testing.T) {
	slowdown := time.Duration(1)
	if testcost.Race {
		slowdown = 15
	}
	for _, v := range []struct {
		clients int
		most    time.Duration
	}{{0, time.Millisecond}, {1000, 20 * time.Millisecond}} {
		s := newSelector(t, Config{Size: 20, ClientIndex: IndexOf(17), ClientCount: v.clients})
		lists := [2]Members{listOf(everybody(1000)), listOf(everybody(1001)[1:])}
		const times = 10
		least := testcost.Least(t, 5, func() {
			for i := range times {
				update(t, s, lists[i%2])
			}
		})[0] / times
		t.Logf("an update takes %v with %d clients known, want at most %v", least, v.clients, v.most)
		if bound := 2 * v.most * slowdown; least > bound {
			t.Errorf("an update takes %v with %d clients known, want at most %v", least, v.clients, bound)
		}
	}
}
