package outlier_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/outlier"
)

// Who leaves the list while ejected and comes back, or is drained, fails its checks or loses its connection for a while, is
// found again by requests that probe: nobody is left ejected whom nobody tries.
func TestBug31WhoComesBackEjectedIsProbed(t *testing.T) {
	away := map[string]func(b *bench){
		"left the list":      func(b *bench) { b.update("b", "c") },
		"drained":            func(b *bench) { b.d.SetStanding(b.index("a"), outlier.Drained, b.now) },
		"failing its checks": func(b *bench) { b.d.SetStanding(b.index("a"), outlier.Failing, b.now) },
		"not ready":          func(b *bench) { b.d.SetStanding(b.index("a"), outlier.Unready, b.now) },
	}
	for name, away := range away {
		for _, while := range []time.Duration{100 * time.Millisecond, 5 * time.Second, 50 * time.Second} {
			b := newBench(t, outlier.Config{}, "a", "b", "c")
			b.observe("a", outlier.Failed, 5)
			away(b)
			b.at(while)
			b.sweep() // what is in nobody's list is dropped
			if _, _, ok := b.d.Probe(b.now, true); ok {
				t.Errorf("%s: probed meanwhile", name)
			}
			b.update("c", "a", "b")
			b.d.SetStanding(b.index("a"), outlier.Usable, b.now)
			b.wantEjected(name, "a")
			b.now += int64(500 * time.Millisecond)
			for range 3 {
				i, token, ok := b.d.Probe(b.now, true)
				if !ok || i != b.index("a") {
					t.Fatalf("%s for %v: nobody probes it", name, while)
				}
				b.finish(b.d.Host(i), outlier.Succeeded, token)
			}
			b.wantEjected(name + ", after three good answers")
		}
	}
}

// Bug 29 in A50: a place that an endpoint took with it would fill the cap after two of them.
func TestBug29A50CountsOnlyWhoIsThere(t *testing.T) {
	c := capped(outlier.A50, 34)
	c.A50.FailurePercentage = &outlier.FailurePercentage{MinHosts: 1, RequestVolume: 5}
	b := newBench(t, c, "h1", "h2", "x0")
	for i := range 50 {
		b.observe(fmt.Sprint("x", i), outlier.Failed, 20)
		b.now += int64(10 * time.Second)
		b.sweep()
		b.wantEjected(fmt.Sprint("round ", i), fmt.Sprint("x", i))
		b.update("h1", "h2", fmt.Sprint("x", i+1))
		b.wantEjected("removed")
	}
}

// Bug 28 by the floor alone: where good rates differ so much that no margin finds anybody, who fails more than half while
// nine in ten of the others' requests succeed is out of order.
func TestBug28AFloorFindsWhoFailsWhereOthersDiffer(t *testing.T) {
	c := outlier.Config{}
	c.Soft.ConsecutiveFailures = outlier.Off
	b := newBench(t, c, idsUpTo(7)...)
	for i, failed := range []int{0, 0, 3, 10, 30, 40, 60} { // of 100 each
		b.observe(idsUpTo(7)[i], outlier.Succeeded, 100-failed)
		b.observe(idsUpTo(7)[i], outlier.Failed, failed)
	}
	b.at(10 * time.Second)
	b.sweep()
	b.wantEjected("by the floor", "h7")
}
