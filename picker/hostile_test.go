package picker_test

import (
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// Whatever an endpoint does to look good while it fails, it gets at most twice its fair share in
// any second but the first. Those that it answers, it answers no faster than others do.
func TestHostileEndpointGetsAtMostTwiceItsShare(t *testing.T) {
	failure := func(after time.Duration, o picker.Outcome) func(k int) (time.Duration, picker.Outcome) {
		return func(int) (time.Duration, picker.Outcome) { return after, o }
	}
	// every answers the first good ones of each period's requests, and fails the others.
	every := func(good, period int) func(k int) (time.Duration, picker.Outcome) {
		return func(k int) (time.Duration, picker.Outcome) {
			if k%period < good {
				return usual, picker.Success
			}
			return time.Microsecond, picker.Failure
		}
	}
	tricks := map[string]func(k int) (time.Duration, picker.Outcome){
		"fails in no time":           failure(0, picker.Failure),
		"fails in its usual time":    failure(usual, picker.Failure),
		"refuses":                    failure(time.Millisecond, picker.Unreached),
		"times out early":            failure(time.Millisecond, picker.Timeout),
		"is overloaded":              failure(time.Millisecond, picker.Overload),
		"never answers":              failure(time.Hour, picker.Timeout),
		"fails every second one":     every(1, 2),
		"fails two of three":         every(1, 3),
		"fails one of four":          every(3, 4),
		"fails one of ten":           every(9, 10),
		"answers one of ten":         every(1, 10),
		"answers a hundred of 1,000": every(100, 1000),
		"answers 900 of 1,000":       every(900, 1000),
	}
	for name, trick := range tricks {
		for _, n := range []int{4, 30} {
			for _, rate := range []int64{100, 1000} {
				for _, from := range []time.Duration{0, 5 * time.Second} {
					f := newFleet(t, picker.Adaptive{}, endpoints(n), 7)
					f.run(from, rate, healthy)
					asked := 0
					for second := range 5 {
						clear(f.counts)
						f.run(time.Second, rate, func(i int, _ int64) (time.Duration, picker.Outcome) {
							if i > 0 {
								return usual, picker.Success
							}
							asked++
							return trick(asked - 1)
						})
						const room = 3 // requests
						if most := 2/float64(n) + room/float64(rate); second > 0 && f.share("e0") > most {
							t.Errorf("n = %d, %d a second, after %v: one that %s gets %.1f %% in second %d, want %.1f %% at most",
								n, rate, from, name, 100*f.share("e0"), second+1, 100*most)
						}
					}
				}
			}
		}
	}
}
