package grpcbalancer

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"
)

// One of ten is down: each survivor gets a ninth, and none the share of the dead one
// on top of its own. The bound is 4.5 standard deviations of a binomial draw, which a
// fair rule exceeds once in 150,000.
func TestSurvivorsShareAlike(t *testing.T) {
	const calls = 18_000
	bound := 4.5 * math.Sqrt(calls*(1.0/9)*(8.0/9))
	for _, c := range []struct {
		config string
		within float64
	}{
		{`{"policy": "round_robin"}`, 1},
		{`{"policy": "random"}`, bound},
		{`{"policy": {"p2c": {"signal": "in_flight"}}}`, bound},
		{`{"policy": {"p2c": {"signal": "latency"}}}`, bound},
	} {
		for down := range 3 {
			t.Run(fmt.Sprintf("%s/down=%d", c.config, down), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newSeededRig(t, c.config, rand.New(rand.NewPCG(uint64(down), 7)).Uint64)
					var names []string
					for i := range 10 {
						names = append(names, fmt.Sprint(i))
					}
					r.up(each(names...)...)
					r.manual = true
					r.conn(fmt.Sprint(4*down)).becomes(connectivity.TransientFailure, errors.New("down"))
					r.settle()
					got := map[string]int{}
					for range calls {
						addr, done := r.picked()
						got[addr]++
						time.Sleep(time.Millisecond)
						done(succeeded)
					}
					if len(got) != 9 {
						t.Fatalf("%d endpoints got calls, want the nine that are up", len(got))
					}
					for addr, n := range got {
						if off := math.Abs(float64(n) - calls/9); off > c.within {
							t.Errorf("%s got %d calls, want %d within %.0f", addr, n, calls/9, c.within)
						}
					}
				})
			})
		}
	}
}
