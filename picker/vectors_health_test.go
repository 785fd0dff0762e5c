package picker_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
	"github.com/evenkeel/evenkeel/picker"
)

func testColdFinagle(t *testing.T, v vector) {
	var in struct{ Pending []int64 }
	var want struct {
		CostNS []float64 `json:"cost_ns"`
	}
	v.into(t, &in, &want)
	_, s := build(t, picker.P2C{Signal: picker.PeakEWMA{Plain: true}}, endpoints(1), nil)
	last := int64(-1)
	for i, k := range in.Pending {
		if got := ewma.FinagleCost(0, k); got != want.CostNS[i] {
			t.Errorf("pending %d costs %v, want %v", k, got, want.CostNS[i])
		}
		for s.Record(0).InFlight() < k {
			hold(t, s, 0)
		}
		cost := picker.PeakEWMA{Plain: true}.Cost(s.Record(0), 0)
		if math.Abs(float64(cost)/ewma.One-math.Log2(math.Max(want.CostNS[i], 1))) > 1.01 || cost <= last {
			t.Errorf("pending %d: the signal's cost is 2^%v, after 2^%v", k, float64(cost)/ewma.One, float64(last)/ewma.One)
		}
		last = cost
	}
}

func testColdProbation(t *testing.T, v vector) {
	var in struct {
		PoolMS  float64 `json:"pool_ms"`
		Pending []int   `json:"new_node_pending"`
	}
	var want struct{ Eligible []bool }
	v.into(t, &in, &want)
	g, s := build(t, picker.P2C{}, endpoints(2), nil)
	p := hold(t, s, 0)
	now := int64(in.PoolMS * 1e6)
	p.Done(now, picker.Result{Outcome: picker.Success})
	g.Sweep(now)
	for i, k := range in.Pending {
		for s.Record(1).InFlight() < int64(k) {
			one := picker.NewSnapshot(s.Members(), []int32{1}, picker.P2C{}, fixed{})
			if _, _, err := one.Pick(picker.Request{}, now); err != nil {
				t.Fatal(err)
			}
		}
		cold, warm := picker.Latency.Cost(s.Record(1), now), picker.Latency.Cost(s.Record(0), now)
		if eligible := cold < warm+10<<16; eligible != want.Eligible[i] {
			t.Errorf("with %d pending it costs 2^%d times a warm one", k, (cold-warm)>>16)
		}
	}
}

func testPenaltyFail(t *testing.T, v vector) {
	var in struct {
		Penalty float64 `json:"penalty_s"`
		Before  float64 `json:"rtt_before_s"`
	}
	var want struct {
		Recorded float64 `json:"recorded_s"`
		After    float64 `json:"read_after_10s_tau10"`
	}
	v.into(t, &in, &want)
	p := ewma.PeakEWMA{Form: ewma.LinkerdForm, Tau: 10 * time.Second}
	p.Observe(int64(in.Before*1e9), 0)
	p.Observe(int64(in.Penalty*1e9), 10e6)
	if got, _ := p.Value(10e6); !close9(got/1e9, want.Recorded) {
		t.Errorf("recorded %v s, want %v", got/1e9, want.Recorded)
	}
	if got, _ := p.Value(10e6 + 10e9); !close9(got/1e9, want.After) {
		t.Errorf("after 10 s %v s, want %v", got/1e9, want.After)
	}
}

func testDubboCold(t *testing.T, _ vector) {
	_, s := build(t, picker.P2C{}, endpoints(2), rand.New(rand.NewPCG(61, 62)).Uint64)
	counts := [2]int{}
	for range 100 {
		_, i, err := s.Pick(picker.Request{}, 0) // no answer yet
		if err != nil {
			t.Fatal(err)
		}
		counts[i]++
	}
	if counts[0] < 45 || counts[0] > 55 {
		t.Errorf("without any answer the picks are %v, want about 50 each", counts)
	}
}

func testSuccessNoRatchet(t *testing.T, v vector) {
	var in struct {
		TauS float64 `json:"tau_s"`
		RPS  int
	}
	var want struct {
		Outage   float64 `json:"success_after_outage"`
		Recovery float64 `json:"success_after_recovery_min"`
	}
	v.into(t, &in, &want)
	p := ewma.NewSuccessParams(time.Duration(in.TauS*1e9), 0, 0)
	var s ewma.Success
	now, step := int64(0), int64(1e9)/int64(in.RPS)
	s.Observe(true, now, p)
	for range 10 * in.RPS {
		now += step
		s.Observe(false, now, p)
	}
	if got := 1 - s.Failure(now, p); math.Abs(got-want.Outage) > 0.001 {
		t.Errorf("success %v after the outage, want %v", got, want.Outage)
	}
	for range 120 * in.RPS {
		s.Observe(true, now, p)
		now += step
	}
	if got := 1 - s.Failure(now, p); got < want.Recovery {
		t.Errorf("success %v after recovery, want at least %v", got, want.Recovery)
	}
}

func testSuccessBackground(t *testing.T, v vector) {
	var in struct {
		TauS float64 `json:"tau_s"`
		RPS  int
	}
	var want struct{ Success float64 }
	v.into(t, &in, &want)
	p := ewma.NewSuccessParams(time.Duration(in.TauS*1e9), 0, 0)
	var s ewma.Success
	now, step := int64(0), int64(1e9)/int64(in.RPS)
	sum := 0.0
	for i := range 600 * in.RPS {
		s.Observe(i%1000 != 500, now, p)
		now += step
		if i >= 500*in.RPS {
			sum += 1 - s.Failure(now, p)
		}
	}
	if got := sum / float64(100*in.RPS); math.Abs(got-want.Success) > 0.0005 {
		t.Errorf("mean success %v, want %v ± 0.0005", got, want.Success)
	}
}
