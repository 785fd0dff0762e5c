package picker_test

import (
	"math"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/evenkeel/evenkeel/picker"
)

const ms = int64(time.Millisecond)

// one returns a snapshot of one endpoint under the latency policy.
func one(tb testing.TB) (*picker.Registry, *picker.Snapshot, *picker.Record) {
	tb.Helper()
	g, s := build(tb, picker.P2C{}, endpoints(1), func() uint64 { return 1 << 40 })
	return g, s, s.Record(0)
}

func pickAt(tb testing.TB, s *picker.Snapshot, r picker.Request, now int64) picker.Pick {
	tb.Helper()
	p, _, err := s.Pick(r, now)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func approx(got time.Duration, want int64) bool {
	return math.Abs(float64(got)/float64(want)-1) < 0.002
}

func TestOutcomesTeachWhatTheTableSays(t *testing.T) {
	for _, tc := range []struct {
		outcome picker.Outcome
		latency int64 // estimate at the end; the one before was 10 ms
		failed  bool
		avoided bool
	}{
		{picker.Success, 50 * ms, false, false},
		{picker.Failure, 10 * ms, true, false},
		{picker.Unreached, 10 * ms, true, false},
		{picker.Timeout, 50 * ms, true, false},
		{picker.Overload, 10 * ms, false, true},
		{picker.Canceled, 50 * ms, false, false},
		{picker.Unknown, 10 * ms, false, false},
	} {
		_, s, r := one(t)
		p := pickAt(t, s, picker.Request{}, 0)
		p.Done(10*ms, picker.Result{Outcome: picker.Success})
		p = pickAt(t, s, picker.Request{}, 10*ms)
		if r.InFlight() != 1 {
			t.Fatalf("%v: in flight %d, want 1", tc.outcome, r.InFlight())
		}
		p.Done(60*ms, picker.Result{Outcome: tc.outcome})
		now := 60 * ms
		got, _ := r.PeakLatency(now)
		want := tc.latency
		if want == 10*ms {
			want = int64(float64(want) * math.Exp(-0.005))
		}
		if !approx(got, want) {
			t.Errorf("%v: latency %v, want %v", tc.outcome, got, time.Duration(want))
		}
		if failed := r.Success(now) < 1; failed != tc.failed {
			t.Errorf("%v: success %v", tc.outcome, r.Success(now))
		} else if failed && r.Success(now) > 0.9001 {
			t.Errorf("%v: success %v, want a step of at least 10 %%", tc.outcome, r.Success(now))
		}
		if avoided := r.AvoidFor(now) > 0; avoided != tc.avoided {
			t.Errorf("%v: avoided for %v", tc.outcome, r.AvoidFor(now))
		}
		if r.InFlight() != 0 || r.Picks() != 2 {
			t.Errorf("%v: in flight %d, picks %d, want 0 and 2", tc.outcome, r.InFlight(), r.Picks())
		}
	}
}

func TestDoneCountsOnce(t *testing.T) {
	for _, needs := range []picker.Policy{picker.RoundRobin{}, picker.P2C{}} {
		_, s := build(t, needs, endpoints(1), nil)
		for _, kind := range []picker.Kind{picker.Unary, picker.Stream, picker.UnknownKind} {
			p := pickAt(t, s, picker.Request{Kind: kind}, 5)
			other := pickAt(t, s, picker.Request{Kind: kind}, 5)
			for range 3 {
				p.FirstByte(6)
				p.Done(7, picker.Result{Outcome: picker.Success})
			}
			if got := s.Record(0).InFlight(); got != 1 {
				t.Errorf("%T, kind %d: in flight %d after one of two is done", needs, kind, got)
			}
			other.Done(8, picker.Result{})
			if got := s.Record(0).InFlight(); got != 0 {
				t.Errorf("%T, kind %d: in flight %d at rest", needs, kind, got)
			}
		}
	}
	var zero picker.Pick
	zero.FirstByte(0)
	zero.Done(0, picker.Result{})
	if zero.Record() != nil || zero.Learns() {
		t.Error("the zero Pick is not done")
	}
}

func TestFirstByteIsTheLatencyAndEndsAgeing(t *testing.T) {
	_, s, r := one(t)
	p := pickAt(t, s, picker.Request{}, 0)
	if _, aging := r.AgeLog2(100 * ms); !aging {
		t.Error("a unary request does not age")
	}
	p.FirstByte(20 * ms)
	if _, aging := r.AgeLog2(100 * ms); aging {
		t.Error("it ages after its first byte")
	}
	if got, _ := r.PeakLatency(20 * ms); !approx(got, 20*ms) {
		t.Errorf("latency %v, want the time to the first byte", got)
	}
	if r.InFlight() != 1 {
		t.Errorf("in flight %d before Done", r.InFlight())
	}
	p.Done(5000*ms, picker.Result{Outcome: picker.Success})
	if got, _ := r.PeakLatency(20 * ms); !approx(got, 20*ms) {
		t.Errorf("latency %v after a long body, want that of the first byte", got)
	}
}

func TestT13StreamsCountButNeitherAgeNorTime(t *testing.T) {
	_, s, r := one(t)
	p := pickAt(t, s, picker.Request{Kind: picker.Stream}, 0)
	if _, aging := r.AgeLog2(100 * ms); aging || r.Streams() != 1 || r.InFlight() != 1 {
		t.Errorf("aging %v, streams %d, in flight %d", aging, r.Streams(), r.InFlight())
	}
	p.Done(60_000*ms, picker.Result{Outcome: picker.Success})
	if _, known := r.PeakLatency(60_000 * ms); known {
		t.Error("a stream's duration became a latency")
	}
	p = pickAt(t, s, picker.Request{Kind: picker.Stream}, 60_000*ms)
	p.FirstByte(60_005 * ms)
	if got, _ := r.PeakLatency(60_005 * ms); !approx(got, 5*ms) {
		t.Errorf("latency %v, want the time to the stream's first byte", got)
	}
	p.Done(70_000*ms, picker.Result{Outcome: picker.Canceled})
	if r.Streams() != 0 || r.InFlight() != 0 {
		t.Errorf("at rest: streams %d, in flight %d", r.Streams(), r.InFlight())
	}
}

func TestUnknownKindAgesSinceTheLastDone(t *testing.T) {
	_, s, r := one(t)
	long := pickAt(t, s, picker.Request{Kind: picker.UnknownKind}, 0)
	p := pickAt(t, s, picker.Request{Kind: picker.UnknownKind}, 29_990*ms)
	p.Done(30_000*ms, picker.Result{Outcome: picker.Success})
	if lg, ok := r.AgeLog2(30_020 * ms); ok && math.Exp2(float64(lg)/65536) > 21e6 {
		t.Errorf("age %v 20 ms after a Done", time.Duration(math.Exp2(float64(lg)/65536)))
	}
	long.Done(60_000*ms, picker.Result{Outcome: picker.Success})
	if got, _ := r.PeakLatency(30_000 * ms); !approx(got, 10*ms) {
		t.Errorf("latency %v, want 10 ms: what lasts 60 s is a stream", got)
	}
}

func TestT12CancelIsNoFailureAndNeverMakesAnEndpointLookFast(t *testing.T) {
	g, s := build(t, picker.P2C{}, endpoints(3), nil)
	// One endpoint has a history of 20 ms, the other two have none.
	p := hold(t, s, 0)
	p.Done(20*ms, picker.Result{Outcome: picker.Success})
	g.Sweep(20 * ms)
	for _, i := range []int{0, 1} {
		one := picker.NewSnapshot(s.Members(), []int32{int32(i)}, picker.P2C{}, picker.P2C{}.Build(s.Members(), nil))
		for k := range int64(100) {
			p, _, err := one.Pick(picker.Request{}, 20*ms+k)
			if err != nil {
				t.Fatal(err)
			}
			p.Done(20*ms+k+1000, picker.Result{Outcome: picker.Canceled}) // leaves after 1 µs
		}
		r := s.Record(i)
		if r.Success(20*ms) != 1 {
			t.Errorf("endpoint %d: success %v after cancellations", i, r.Success(20*ms))
		}
		if got, known := r.PeakLatency(20 * ms); known != (i == 0) || known && !approx(got, 20*ms) {
			t.Errorf("endpoint %d: latency %v, known %v", i, got, known)
		}
	}
	r := s.Record(2)
	two := picker.NewSnapshot(s.Members(), []int32{2}, picker.P2C{}, picker.P2C{}.Build(s.Members(), nil))
	p2, _, _ := two.Pick(picker.Request{}, 20*ms)
	p2.Done(520*ms, picker.Result{Outcome: picker.Canceled})
	if got, _ := r.PeakLatency(520 * ms); !approx(got, 500*ms) {
		t.Errorf("latency %v of an endpoint that let a caller wait for 500 ms", got)
	}
}

func TestOverloadAvoidsUntilTheClampedHint(t *testing.T) {
	for _, tc := range []struct {
		hint, least, most time.Duration
	}{
		{0, 900 * time.Millisecond, 1100 * time.Millisecond},
		{-time.Hour, 900 * time.Millisecond, 1100 * time.Millisecond},
		{5 * time.Second, 4500 * time.Millisecond, 5500 * time.Millisecond},
		{math.MaxInt64, 27 * time.Second, 33 * time.Second},
	} {
		_, s := build(t, picker.P2C{}, endpoints(1), nil)
		p := pickAt(t, s, picker.Request{}, 0)
		p.Done(ms, picker.Result{Outcome: picker.Overload, RetryAfter: tc.hint})
		if got := s.Record(0).AvoidFor(ms); got < tc.least || got > tc.most {
			t.Errorf("hint %v: avoided for %v, want %v to %v", tc.hint, got, tc.least, tc.most)
		}
		left := s.Record(0).AvoidFor(ms)
		p = pickAt(t, s, picker.Request{}, ms)
		p.Done(ms, picker.Result{Outcome: picker.Overload, RetryAfter: 1}) // shorter
		if s.Record(0).AvoidFor(ms) < left {
			t.Errorf("hint %v: a later, shorter hint cut it short", tc.hint)
		}
	}
}

func TestBug56OverloadedEndpointLosesItsShareWithoutAFailure(t *testing.T) {
	_, s := build(t, picker.P2C{}, endpoints(5), nil)
	now, got := int64(0), 0
	for range 5000 {
		now += ms
		p, i, err := s.Pick(picker.Request{}, now)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			got++
			p.Done(now+ms, picker.Result{Outcome: picker.Overload})
		} else {
			p.Done(now+ms, picker.Result{Outcome: picker.Success})
		}
	}
	if r := s.Record(0); r.Success(now) != 1 {
		t.Errorf("success %v, want 1: it asked for less, it did not fail", r.Success(now))
	}
	if got > 50 { // five seconds, one try a second, and the first draws
		t.Errorf("it got %d of 5,000", got)
	}
}

func TestBug63HugeGapsAndBackwardClocksAreHarmless(t *testing.T) {
	_, s, r := one(t)
	for _, at := range [][2]int64{{0, math.MaxInt64}, {math.MaxInt64, 0}, {-1, -5}, {math.MinInt64, math.MaxInt64}, {5, 5}} {
		p := pickAt(t, s, picker.Request{}, at[0])
		p.Done(at[1], picker.Result{Outcome: picker.Timeout})
		if v := r.Success(at[1]); math.IsNaN(v) || v < 0 || v > 1 {
			t.Errorf("%v: success %v", at, v)
		}
		picker.Latency.Cost(r, at[0])
		picker.Latency.Cost(r, at[1])
	}
	if r.InFlight() != 0 {
		t.Errorf("in flight %d", r.InFlight())
	}
}

// What a comparing pick reads is one cache line, and no two records share one.
func TestRecordsKeepToTheirCacheLines(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("records are laid out for 64-bit machines")
	}
	if got := unsafe.Sizeof(picker.Record{}); got%64 != 0 {
		t.Errorf("a Record has %d bytes, want a multiple of 64", got)
	}
	_, s := build(t, picker.P2C{}, endpoints(1000), nil)
	for i := range s.Len() {
		if at := uintptr(unsafe.Pointer(s.Record(i))); at%64 != 0 {
			t.Fatalf("record %d is %d bytes off a cache line", i, at%64)
		}
	}
}

// Pick and Done run on every request: an allocation there is paid by everybody.
func TestPickAndDoneDoNotAllocate(t *testing.T) {
	for _, p := range benchPolicies {
		g, s := build(t, p.policy, endpoints(100), nil)
		now := int64(0)
		warm(t, g, s, &now)
		for o := picker.Unknown; o <= picker.Canceled; o++ {
			for _, kind := range []picker.Kind{picker.Unary, picker.Stream, picker.UnknownKind} {
				if n := testing.AllocsPerRun(200, func() {
					now += ms
					pick, _, err := s.Pick(picker.Request{Kind: kind}, now)
					if err != nil {
						t.Fatal(err)
					}
					pick.FirstByte(now + 1)
					pick.Done(now+ms, picker.Result{Outcome: o})
				}); n != 0 {
					t.Errorf("%s, %v, kind %d: %v allocations", p.name, o, kind, n)
				}
			}
		}
	}
}

func TestConcurrentPicksLeaveNothingInFlight(t *testing.T) {
	for _, p := range benchPolicies {
		g, s := build(t, p.policy, endpoints(10), nil)
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for k := range int64(3000) {
					now := k * ms
					pick, _, err := s.Pick(picker.Request{Kind: picker.Kind(k % 3)}, now)
					if err != nil {
						t.Error(err)
						return
					}
					if k%2 == 0 {
						pick.FirstByte(now + 1)
					}
					pick.Done(now+int64(w), picker.Result{Outcome: picker.Outcome(k % 7)})
				}
			})
		}
		g.Sweep(int64(time.Second))
		wg.Wait()
		total := uint64(0)
		for i := range s.Len() {
			r := s.Record(i)
			total += r.Picks()
			if r.InFlight() != 0 || r.Streams() != 0 {
				t.Errorf("%s: endpoint %d: in flight %d, streams %d", p.name, i, r.InFlight(), r.Streams())
			}
		}
		if total != 24_000 {
			t.Errorf("%s: %d picks counted of 24,000", p.name, total)
		}
	}
}
