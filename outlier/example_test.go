package outlier_test

import (
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel/outlier"
)

// An endpoint fails five times in a row, is probed with single requests, and returns on a ramp.
func Example() {
	now := int64(0)
	steady := func() uint64 { return 1 << 63 } // no jitter, for this example
	d, err := outlier.NewDetector(outlier.Config{}, steady, now)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := d.Update([]outlier.Member{{ID: "a"}, {ID: "b"}, {ID: "c"}}, now); err != nil {
		fmt.Println(err)
		return
	}
	show := func(changes []outlier.Change) {
		for _, c := range changes {
			fmt.Printf("%v: %s %v → %v (%v), to pick from: %v\n",
				time.Duration(now), c.ID, c.From, c.To, c.Reason, d.Available(nil))
		}
	}

	b := d.Host(1)
	for range 5 {
		token := b.Token()                            // when the request is sent
		if b.Observe(outlier.Unreached, token, now) { // when it ends
			show(d.Act(b, now))
		}
	}
	for step := range 15 {
		now = int64(step) * int64(time.Second)
		for d.ProbeDue(now, true) {
			i, token, ok := d.Probe(now, true)
			if !ok {
				break
			}
			event := outlier.Unreached
			if now >= int64(3*time.Second) {
				event = outlier.Succeeded
			}
			fmt.Printf("%v: a request is tried on %d: %v\n", time.Duration(now), i, event)
			if h := d.Host(i); h.Observe(event, token, now) {
				show(d.Act(h, now))
			}
		}
		_, changes := d.Sweep(now)
		show(changes)
	}
	// Output:
	// 0s: b available → ejected (consecutive failures), to pick from: [0 2]
	// 1s: a request is tried on 1: unreached
	// 2s: a request is tried on 1: unreached
	// 4s: a request is tried on 1: succeeded
	// 4s: a request is tried on 1: succeeded
	// 4s: a request is tried on 1: succeeded
	// 4s: b ejected → ramping (recovered), to pick from: [0 1 2]
	// 14s: b ramping → available (ramp over), to pick from: [0 1 2]
}

// Configurations are checked as a whole.
func ExampleConfig_Validate() {
	c := outlier.Config{
		MaxEjectionPercent: outlier.PercentOf(140),
		BaseEjectionTime:   time.Minute,
		MaxEjectionTime:    time.Second,
	}
	fmt.Println(c.Validate())
	// Output:
	// outlier: Config.MaxEjectionPercent is 140, want 0 to 100
	// outlier: Config.MaxEjectionTime is 1s, want at least BaseEjectionTime, 1m0s
}
