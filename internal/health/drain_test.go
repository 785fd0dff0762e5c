package health

import (
	"math"
	"testing"
)

func TestDepartureIsOverWhenEmptyOrAtItsLimit(t *testing.T) {
	var d Departure
	if d.Over(sec, 0) || d.Next() != math.MaxInt64 {
		t.Error("it is over before it began")
	}
	d.Begin(sec, 30*sec)
	for _, c := range []struct {
		now, inFlight int64
		want          bool
	}{{sec, 1, false}, {30 * sec, 1, false}, {31 * sec, 1, true}, {2 * sec, 0, true}} {
		if got := d.Over(c.now, c.inFlight); got != c.want {
			t.Errorf("over %v at %d s with %d in flight", got, c.now/sec, c.inFlight)
		}
	}
	if d.Next() != 31*sec {
		t.Errorf("next at %d", d.Next())
	}
	for _, limit := range []int64{0, -1, math.MaxInt64} {
		d.Begin(sec, limit)
		if d.Over(math.MaxInt64-1, 1) || !d.Over(sec, 0) || d.Next() != math.MaxInt64 {
			t.Errorf("a limit of %d", limit)
		}
	}
}
