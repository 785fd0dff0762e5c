package picker_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/evenkeel/evenkeel/picker"
)

// Done on copies of a Pick counts each time: a caller's mistake. It may make the endpoint look idle for
// a while, and must never make it look busy, or hide requests that begin afterwards for good.
func TestDoneOnCopiesNeverMakesAnEndpointLookBusy(t *testing.T) {
	for _, tc := range comparing {
		for _, kind := range []picker.Kind{picker.Unary, picker.Stream, picker.UnknownKind} {
			for _, begun := range []string{"not", "first byte", "answered"} {
				t.Run(fmt.Sprintf("%s/%v/%s", tc.name, kind, begun), func(t *testing.T) {
					testDoneOnCopies(t, tc.policy, kind, begun)
				})
			}
		}
	}
}

func testDoneOnCopies(t *testing.T, policy picker.Policy, kind picker.Kind, begun string) {
	g, s := build(t, policy, endpoints(3), rand.New(rand.NewPCG(81, 82)).Uint64)
	now := int64(0)
	warm(t, g, s, &now)
	rec := s.Record(0)
	one := picker.NewSnapshot(s.Members(), []int32{0}, fixed{s.Needs()}, fixed{})
	for range 2 {
		p := pickAt(t, one, picker.Request{Kind: kind}, now)
		switch begun {
		case "first byte":
			p.FirstByte(now + ms)
		case "answered":
			p.Answered(now+ms, picker.Result{Outcome: picker.Success})
		}
		for range 3 {
			c := p
			c.Done(now+ms, picker.Result{Outcome: picker.Success})
		}
	}
	g.Sweep(now + ms)
	if n := rec.InFlight(); n != 0 {
		t.Errorf("in flight %d", n)
	}
	if c := picker.InFlight.Cost(rec, now); c != 0 {
		t.Errorf("least request takes it for 2^%.1f", doublings(c, 0))
	}
	const total = 3000
	got := 0
	for range total {
		p, i, err := s.Pick(picker.Request{}, now+2*ms)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			got++
		}
		p.Done(now+3*ms, picker.Result{Outcome: picker.Success})
	}
	if got < total/4 { // an equal share is a third
		t.Errorf("it gets %d of %d requests", got, total)
	}
	// As many as were too few are not seen, and then each is.
	open := 0
	for range 10 {
		pickAt(t, one, picker.Request{Kind: kind}, now+3*ms)
		open++
	}
	if n := rec.InFlight(); n < int64(open)-4 || n > int64(open) {
		t.Errorf("in flight %d of %d that have begun, of which 4 may be missed", n, open)
	}
}
