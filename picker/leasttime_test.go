package picker_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
	"github.com/evenkeel/evenkeel/picker"
)

func TestLeastTimeRoundsLikeNGINX(t *testing.T) {
	sig := picker.LeastTime{}
	_, s := build(t, picker.Least{Signal: sig}, endpoints(4), nil)
	for i, d := range []int64{3, 19, 21, 9000} {
		p := hold(t, s, i)
		p.Done(d*ms, picker.Result{Outcome: picker.Success})
	}
	now := 9000 * ms
	cost := func(i int) int64 { return sig.Cost(s.Record(i), now) }
	if cost(0) != cost(1) || cost(2) != cost(0)+ewma.One {
		t.Errorf("3, 19 and 21 ms cost %d, %d, %d; want one, one and two buckets of 20 ms", cost(0), cost(1), cost(2))
	}
	if want := ewma.Log2(250); cost(3) != want {
		t.Errorf("9 s cost %d, want %d as 5 s", cost(3), want)
	}
	later := now + int64(21*time.Second) // unused for two halvings
	if got := sig.Cost(s.Record(3), later); got != ewma.Log2(9000/4/20+1) {
		t.Errorf("after two halvings %d, want %d", got, ewma.Log2(9000/4/20+1))
	}
}

// What does not ask for the success score goes on as before when an endpoint fails or asks to be left
// alone: NGINX's averages are of good answers alone, and its failures belong to max_fails.
func TestSignalsWithoutSuccessIgnoreFailuresAndHints(t *testing.T) {
	for _, signal := range []picker.Signal{picker.LeastTime{}, picker.PeakEWMA{Plain: true}} {
		g, s := build(t, picker.Least{Signal: signal}, endpoints(3), rand.New(rand.NewPCG(91, 92)).Uint64)
		now := int64(0)
		for i := range 3 {
			now = answerEvery(t, s, i, 20, usual, 0)
		}
		g.Sweep(now)
		rec, before := s.Record(1), signal.Cost(s.Record(1), now)
		for _, o := range []picker.Outcome{picker.Failure, picker.Unreached, picker.Overload} {
			for range 10 {
				p := holdAt(t, s, 1, now)
				p.Done(now, picker.Result{Outcome: o, RetryAfter: 20 * time.Second})
			}
			if got := signal.Cost(rec, now); got != before {
				t.Errorf("%#v: after ten times %v it costs %d, before %d", signal, o, got, before)
			}
		}
		if rec.Success(now) != 1 || rec.AvoidFor(now) != 0 {
			t.Errorf("%#v: success %v, avoided for %v; want neither learnt", signal, rec.Success(now), rec.AvoidFor(now))
		}
		got := 0
		const total = 3000
		for range total {
			p, i, err := s.Pick(picker.Request{}, now)
			if err != nil {
				t.Fatal(err)
			}
			if i == 1 {
				got++
			}
			p.Done(now, picker.Result{Outcome: picker.Unknown})
		}
		if math.Abs(float64(got)-total/3) > 5*math.Sqrt(total*2.0/9) {
			t.Errorf("%#v: it gets %d of %d requests, want a third", signal, got, total)
		}
	}
}
