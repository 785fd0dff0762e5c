package picker_test

import (
	"math"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
	"github.com/evenkeel/evenkeel/picker"
)

func close9(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b)) }

func testPeakAlpha(t *testing.T, v vector) {
	var in struct {
		Alpha   float64
		Samples []float64
	}
	var want struct{ Values []float64 }
	v.into(t, &in, &want)
	p := ewma.PeakEWMA{Form: ewma.AlphaForm, Alpha: in.Alpha}
	for i, x := range in.Samples {
		p.Observe(int64(x), int64(i))
		if got, _ := p.Value(int64(i)); !close9(got, want.Values[i]) {
			t.Errorf("after sample %d: %v, want %v", i, got, want.Values[i])
		}
	}
}

// replay feeds a peak_ewma_time vector's events, in seconds and milliseconds, and
// returns the estimate in milliseconds at the last instant.
func replay(t *testing.T, v vector, form ewma.PeakForm) float64 {
	t.Helper()
	var in struct {
		TauS   float64 `json:"tau_s"`
		Events [][]any
	}
	var ignored any
	v.into(t, &in, &ignored)
	p := ewma.PeakEWMA{Form: form, Tau: time.Duration(in.TauS * 1e9)}
	last := int64(0)
	for _, e := range in.Events {
		if e[0] == "sample" {
			at := int64(e[1].(float64) * 1e9)
			last = max(last, at)
			p.Observe(int64(e[2].(float64)*1e6), at)
			continue
		}
		for _, at := range e[1:] {
			p.Value(int64(at.(float64) * 1e9))
		}
	}
	got, ok := p.Value(last)
	if !ok {
		t.Fatal("no sample")
	}
	return got / 1e6
}

func testPeakTime(t *testing.T, v vector) {
	var in any
	var want struct{ Value float64 }
	v.into(t, &in, &want)
	for _, form := range []ewma.PeakForm{ewma.FinagleForm, ewma.LinkerdForm} {
		if got := replay(t, v, form); !close9(got, want.Value) {
			t.Errorf("form %d: %v, want %v", form, got, want.Value)
		}
	}
}

func testPeakReadPurity(t *testing.T, v vector) {
	var in any
	var want struct {
		Linkerd float64 `json:"linkerd_projection_value"`
		Finagle float64 `json:"tower_finagle_mutating_value"`
		Ours    float64 `json:"ours_peakhold_value"`
	}
	v.into(t, &in, &want)
	if got := replay(t, v, ewma.LinkerdForm); !close9(got, want.Linkerd) {
		t.Errorf("Linkerd's: %v, want %v", got, want.Linkerd)
	}
	if got := replay(t, v, ewma.FinagleForm); !close9(got, want.Finagle) {
		t.Errorf("Finagle's: %v, want %v", got, want.Finagle)
	}
	d := ewma.NewDecay(10 * time.Second)
	var p ewma.Peak
	p.Observe(100e6, 0, d)
	for s := range int64(9) {
		p.Log2((s+1)*1e9, d)
	}
	p.Observe(20e6, 10e9, d)
	lg, _ := p.Log2(10e9, d)
	if got := ewma.Exp2(lg) / 1e6; math.Abs(got/want.Ours-1) > 0.002 {
		t.Errorf("peak-hold: %v, want %v", got, want.Ours)
	}
}

func testPeakHoldCompare(t *testing.T, v vector) {
	type node struct{ Samples [][2]float64 }
	var in struct {
		TauS      float64 `json:"tau_s"`
		A, B      node
		CompareAt []float64 `json:"compare_at"`
	}
	var want struct {
		Winner  []string
		EstAt20 []float64 `json:"est_at_20"`
	}
	v.into(t, &in, &want)
	d := ewma.NewDecay(time.Duration(in.TauS * 1e9))
	var a, b ewma.Peak
	for _, s := range in.A.Samples {
		a.Observe(int64(s[1]*1e6), int64(s[0]*1e9), d)
	}
	for _, s := range in.B.Samples {
		b.Observe(int64(s[1]*1e6), int64(s[0]*1e9), d)
	}
	for i, at := range in.CompareAt {
		la, _ := a.Log2(int64(at*1e9), d)
		lb, _ := b.Log2(int64(at*1e9), d)
		if winner := map[bool]string{true: "a", false: "b"}[la <= lb]; winner != want.Winner[i] {
			t.Errorf("at %v s %s wins, want %s", at, winner, want.Winner[i])
		}
	}
	la, _ := a.Log2(20e9, d)
	lb, _ := b.Log2(20e9, d)
	for i, lg := range []int64{la, lb} {
		if got := ewma.Exp2(lg) / 1e6; math.Abs(got/want.EstAt20[i]-1) > 0.005 {
			t.Errorf("estimate %d: %v, want %v", i, got, want.EstAt20[i])
		}
	}
}

func testPeakHoldPending(t *testing.T, v vector) {
	type node struct {
		EstMS   float64 `json:"est_ms"`
		Pending int
		Weight  float64
	}
	var in struct{ A, B, C node }
	var want struct {
		Cost map[string]float64 `json:"log2_cost_minus_log2_ms"`
	}
	v.into(t, &in, &want)
	nodes := []node{in.A, in.B, in.C}
	_, s := build(t, picker.P2C{Signal: picker.PeakHold}, weighted(in.A.Weight, in.B.Weight, in.C.Weight), nil)
	now := int64(0)
	for i, n := range nodes {
		p := hold(t, s, i)
		p.Done(int64(n.EstMS*1e6), picker.Result{Outcome: picker.Success})
		now = max(now, int64(n.EstMS*1e6))
	}
	for i, n := range nodes {
		one := picker.NewSnapshot(s.Members(), []int32{int32(i)}, picker.P2C{}, fixed{})
		for range n.Pending {
			if _, _, err := one.Pick(picker.Request{}, now); err != nil {
				t.Fatal(err)
			}
		}
	}
	ms := math.Log2(1e6)
	for i, id := range []string{"a", "b", "c"} {
		r := s.Record(i)
		cost := float64(picker.PeakHold.Cost(r, now))/ewma.One - math.Log2(nodes[i].Weight) - ms
		if math.Abs(cost-want.Cost[id]) > 0.005 {
			t.Errorf("%s costs 2^%v ms, want 2^%v", id, cost, want.Cost[id])
		}
	}
}

func testInFlightAge(t *testing.T, v vector) {
	var in struct {
		Starts []float64 `json:"starts_ms"`
		Now    float64   `json:"now_ms"`
	}
	var want struct {
		Mean float64 `json:"mean_age_ms"`
	}
	v.into(t, &in, &want)
	var a ewma.Age
	for _, s := range in.Starts {
		a.Start(int64(s * 1e6))
	}
	if got := float64(a.Mean(int64(in.Now*1e6))) / 1e6; math.Abs(got-want.Mean) > 0.0164 {
		t.Errorf("mean age %v ms, want %v within two units of 8.192 µs", got, want.Mean)
	}
}
