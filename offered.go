package evenkeel

import (
	"math"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// offeredOver is the time constant of the load by which a subset's size goes: minutes, as
// connections are made and closed by it.
const offeredOver = 2 * time.Minute

// offered is the load that the client offers, in requests a second: what it picked, whatever
// became of it. The zero offered has seen nothing.
type offered struct {
	follows bool  // somebody wants to know
	counted int64 // picks of the present members up to the last look
	since   int64 // picks since the last measure, of earlier members
	at      int64 // instant of the last measure
	rate    float64
}

// before and after frame a change of the members.
func (o *offered) before(m *picker.Members, now int64) {
	if o.follows {
		o.since += picksOf(m) - o.counted
	} else {
		o.at = now
	}
}

func (o *offered) after(m *picker.Members, follows bool) {
	if o.follows = follows; follows {
		o.counted = picksOf(m)
	}
}

// measure returns the smoothed load at instant now.
func (o *offered) measure(m *picker.Members, now int64) float64 {
	gap := time.Duration(now - o.at)
	if gap <= 0 {
		return o.rate
	}
	n := picksOf(m)
	picks := max(o.since+n-o.counted, 0)
	o.counted, o.since, o.at = n, 0, now
	share := -math.Expm1(-float64(gap) / float64(offeredOver))
	o.rate += (float64(picks)/gap.Seconds() - o.rate) * share
	return o.rate
}

func picksOf(m *picker.Members) (n int64) {
	for i := range m.Len() {
		n += int64(m.Record(i).Picks())
	}
	return n
}
