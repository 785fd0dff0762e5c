package picker_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
	"github.com/evenkeel/evenkeel/picker"
)

type vector struct {
	ID     string
	Algo   string
	Input  json.RawMessage
	Expect json.RawMessage
	Note   string
}

func readVectors(tb testing.TB) []vector {
	tb.Helper()
	raw, err := os.ReadFile("testdata/signals-and-rules.json")
	if err != nil {
		tb.Fatal(err)
	}
	var file struct{ Vectors []vector }
	if err := json.Unmarshal(raw, &file); err != nil {
		tb.Fatal(err)
	}
	return file.Vectors
}

// into decodes both halves of a vector.
func (v vector) into(t *testing.T, input, expect any) {
	t.Helper()
	if err := json.Unmarshal(v.Input, input); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(v.Expect, expect); err != nil {
		t.Fatal(err)
	}
}

// elsewhere names the vectors that other tests of this module run, and those that
// describe somebody else's formula, with where or why. A trailing * matches any rest.
var elsewhere = map[string]string{
	"swrr-nginx-effective":  "NGINX's own failure handling; ours is the success score",
	"swrr-*":                "TestWeightedRuleVectors",
	"edf-least-request-*":   "TestWeightedRuleVectors",
	"edf-*":                 "TestWeightedRuleVectors",
	"stride-*":              "TestWeightedRuleVectors",
	"lr-weight":             "TestWeightedRuleVectors",
	"iwrr-511":              "interleaved WRR, which bursts: smooth WRR and EDF are what we have instead",
	"pushback":              "the adapters' tests of Retry-After and grpc-retry-pushback-ms",
	"servicetalk-*":         "ServiceTalk's own formula",
	"c3-score":              "C3's own formula",
	"orca-*":                "load reports are not built yet",
	"slow-start-*":          "slow start is not built yet",
	"p2c-rank-replacement*": "draws with replacement, which we do not do",
	"cold-flood-bound":      "what a cold endpoint of lowest cost leads to, which ours is not",
	"inflight-age-wrap":     "instants here are not below 0; TestAgeHealsAfterOverflow in ewma wraps the sum",
}

var vectorTests = map[string]func(*testing.T, vector){
	"peak-alpha-0.3":           testPeakAlpha,
	"peak-time-sample-below":   testPeakTime,
	"peak-read-purity":         testPeakReadPurity,
	"peak-out-of-order":        testPeakTime,
	"peak-zero-dt-burst":       testPeakTime,
	"peakhold-compare-noclock": testPeakHoldCompare,
	"peakhold-pending":         testPeakHoldPending,
	"cold-finagle":             testColdFinagle,
	"cold-probation":           testColdProbation,
	"penalty-fail":             testPenaltyFail,
	"dubbo-cold":               testDubboCold,
	"success-ewma-no-ratchet":  testSuccessNoRatchet,
	"success-ewma-background":  testSuccessBackground,
	"inflight-age":             testInFlightAge,
	"weighted-compare":         testWeightedCompare,
	"nginx-least-conn":         testNGINXLeastConn,
	"p2c-rank-distinct":        testP2CRank,
	"rr-wrap":                  testRRWrap,
	"two-distinct":             testTwoDistinct,
}

// Every vector is run here, run elsewhere, or left out for a stated reason; and every
// name in the tables is in the file.
func TestVectorsOfSignalsAndSampling(t *testing.T) {
	used := map[string]bool{}
	ran, left := 0, 0
	for _, v := range readVectors(t) {
		if run, ok := vectorTests[v.ID]; ok {
			used[v.ID] = true
			ran++
			t.Run(v.ID, func(t *testing.T) { run(t, v) })
			continue
		}
		if k := matching(v.ID); k != "" {
			used[k] = true
			left++
			continue
		}
		t.Errorf("no test runs vector %s", v.ID)
	}
	for id := range vectorTests {
		if !used[id] {
			t.Errorf("there is no vector %s", id)
		}
	}
	for id := range elsewhere {
		if !used[id] && id != "edf-*" && id != "swrr-*" {
			t.Errorf("no vector matches %s", id)
		}
	}
	if ran != len(vectorTests) || ran+left != len(readVectors(t)) {
		t.Errorf("ran %d of %d, %d elsewhere", ran, len(readVectors(t)), left)
	}
}

// matching returns the longest key of elsewhere that id matches.
func matching(id string) (best string) {
	for k := range elsewhere {
		prefix, open := strings.CutSuffix(k, "*")
		if (id == k || open && strings.HasPrefix(id, prefix)) && len(k) > len(best) {
			best = k
		}
	}
	return best
}

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

func testWeightedCompare(t *testing.T, v vector) {
	type node struct{ Inflight, Weight int }
	var in struct{ A, B node }
	var want struct{ Pick string }
	v.into(t, &in, &want)
	pickLeast(t, []int{in.A.Inflight, in.B.Inflight}, []int{in.A.Weight, in.B.Weight}, want.Pick)
}

func testNGINXLeastConn(t *testing.T, v vector) {
	type node struct{ Conns, Weight int }
	var in struct{ A, B node }
	var want struct{ Pick string }
	v.into(t, &in, &want)
	pickLeast(t, []int{in.A.Conns, in.B.Conns}, []int{in.A.Weight, in.B.Weight}, want.Pick)
}

func pickLeast(t *testing.T, inflight, weights []int, want string) {
	t.Helper()
	for _, policy := range []picker.Policy{picker.Least{}, picker.P2C{Signal: picker.InFlight}} {
		_, s := build(t, policy, weighted(float64(weights[0]), float64(weights[1])), nil)
		for i, k := range inflight {
			for range k {
				hold(t, s, i)
			}
		}
		p, i, err := s.Pick(picker.Request{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.Done(0, picker.Result{})
		if got := string(rune('a' + i)); got != want {
			t.Errorf("%#v: picked %s, want %s", policy, got, want)
		}
	}
}

func testP2CRank(t *testing.T, v vector) {
	var in struct{ N int }
	var want struct{ P []float64 }
	v.into(t, &in, &want)
	// Each ordered pair equally often: the source walks through a grid.
	const grid = 90
	counts := make([]float64, in.N)
	var word uint64
	_, s := build(t, picker.P2C{Signal: picker.InFlight}, endpoints(in.N), func() uint64 { return word })
	for i := range in.N {
		for range i {
			hold(t, s, i)
		}
	}
	for a := range grid {
		for b := range grid {
			word = (uint64(a)<<32/grid+1000)<<32 | (uint64(b)<<32/grid + 1000)
			p, i, err := s.Pick(picker.Request{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			p.Done(0, picker.Result{})
			counts[i] += 1.0 / (grid * grid)
		}
	}
	for i, p := range want.P {
		if math.Abs(counts[i]-p) > 1e-12 {
			t.Errorf("rank %d wins with probability %v, want %v", i, counts[i], p)
		}
	}
}

func testRRWrap(t *testing.T, v vector) {
	var in struct{ N int }
	var want any
	v.into(t, &in, &want)
	// A 32-bit counter shows where it wraps; ours passes there in step.
	for _, from := range []uint64{1<<32 - 4, 1<<61 - 4} {
		word := from << 1
		_, s := build(t, picker.RoundRobin{}, endpoints(in.N), func() uint64 { return word })
		last := -1
		for k := range 12 {
			_, i, err := s.Pick(picker.Request{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			if k > 0 && i != (last+1)%in.N {
				t.Errorf("from %d: %d after %d", from, i, last)
			}
			last = i
		}
	}
}

func testTwoDistinct(t *testing.T, v vector) {
	var in struct {
		N     int
		Draws [][2]int
	}
	var want struct{ Pair [][2]int }
	v.into(t, &in, &want)
	var word uint64
	_, s := build(t, picker.P2C{Signal: picker.InFlight}, endpoints(in.N), func() uint64 { return word })
	for i, d := range in.Draws {
		// The first draw is in [0, n), the second in [0, n-1): take the middle of each.
		word = (uint64(d[0])<<32/uint64(in.N)+1<<20)<<32 | (uint64(d[1])<<32/uint64(in.N-1) + 1<<20)
		p, first, err := s.Pick(picker.Request{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.Done(0, picker.Result{})
		busy := hold(t, s, first) // now the second wins
		p, second, err := s.Pick(picker.Request{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.Done(0, picker.Result{})
		busy.Done(0, picker.Result{})
		if got := [2]int{first, second}; got != want.Pair[i] {
			t.Errorf("draws %v give %v, want %v", d, got, want.Pair[i])
		}
	}
}
