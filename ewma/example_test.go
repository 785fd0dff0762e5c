package ewma_test

import (
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
)

// A peak is believed at once and forgotten with the time constant: after one of ten seconds a
// factor of e is left of it.
func ExamplePeak() {
	decay := ewma.NewDecay(10 * time.Second)
	var peak ewma.Peak
	now := int64(0)
	peak.Observe(int64(20*time.Millisecond), now, decay)
	peak.Observe(int64(500*time.Millisecond), now, decay)

	for _, later := range []time.Duration{0, 10 * time.Second, 30 * time.Second} {
		lg, _ := peak.Log2(now+int64(later), decay)
		fmt.Println(later, time.Duration(ewma.Exp2(lg)).Round(time.Millisecond))
	}
	// Output:
	// 0s 500ms
	// 10s 184ms
	// 30s 25ms
}

// An average of logarithms forgives one slow answer, and fades to what is usual in the pool, here
// 10 ms, while there are no new ones.
func ExampleLogMean() {
	params := ewma.NewLogMeanParams(time.Second)
	usual := ewma.LatencyLog2(int64(10 * time.Millisecond))
	var mean ewma.LogMean
	now := int64(0)
	observe := func(x time.Duration) {
		now += int64(x)
		mean.Observe(int64(x), now, params, usual)
	}
	for range 200 {
		observe(40 * time.Millisecond)
	}
	show := func(what string) {
		lg, _ := mean.Log2(now, params, usual)
		fmt.Println(what, time.Duration(ewma.Exp2(lg)).Round(time.Millisecond))
	}
	show("usually:")
	observe(400 * time.Millisecond)
	show("after a slow answer:")
	now += int64(5 * time.Minute)
	show("five minutes later:")
	// Output:
	// usually: 40ms
	// after a slow answer: 50ms
	// five minutes later: 10ms
}
