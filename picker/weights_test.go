package picker

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"
)

// vectorCase is one case of testdata/signals-and-rules.json.
type vectorCase struct {
	ID     string          `json:"id"`
	Algo   string          `json:"algo"`
	Input  json.RawMessage `json:"input"`
	Expect json.RawMessage `json:"expect"`
}

// vectorsOf returns the cases of one algorithm. want is how many the file has, so that
// none is left out unseen.
func vectorsOf(t *testing.T, algo string, want int) []vectorCase {
	t.Helper()
	text, err := os.ReadFile("testdata/signals-and-rules.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []vectorCase `json:"vectors"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var cases []vectorCase
	for _, c := range file.Vectors {
		if c.Algo == algo {
			cases = append(cases, c)
		}
	}
	if len(cases) != want {
		t.Fatalf("%d vectors of %s, want %d", len(cases), algo, want)
	}
	return cases
}

// TestWeightedRuleVectors runs every vector of the rules by weight.
func TestWeightedRuleVectors(t *testing.T) {
	t.Run("smooth_wrr", testSmoothWRRVectors)
	t.Run("edf", testEDFVectors)
	t.Run("edf_least_request", testWeightedLeastRequestVectors)
	t.Run("lr_weight", testLeastRequestWeightVectors)
	t.Run("static_stride", testStaticStrideVectors)
	t.Run("static_stride_scale", testStrideScaleVectors)
}

// read decodes the input and what is expected.
func (c vectorCase) read(t *testing.T, input, expect any) {
	t.Helper()
	if err := json.Unmarshal(c.Input, input); err != nil {
		t.Fatal(c.ID, err)
	}
	if err := json.Unmarshal(c.Expect, expect); err != nil {
		t.Fatal(c.ID, err)
	}
}

// listOf returns endpoints a, b, c … with these weights.
func listOf(weights ...float64) []Endpoint {
	list := make([]Endpoint, len(weights))
	for i, w := range weights {
		list[i] = Endpoint{ID: string(rune('a' + i)), Weight: WeightOf(w)}
	}
	return list
}

// membersOf returns members with these weights, in a registry of their own.
func membersOf(t testing.TB, weights ...float64) *Members {
	t.Helper()
	m, err := NewRegistry(nil).Members(listOf(weights...), 0)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// letters returns the IDs of n picks in a row; each ends at once if done is set.
func letters(t testing.TB, s *Snapshot, n int, done bool) string {
	t.Helper()
	out := make([]byte, 0, n)
	for range n {
		p, _, err := s.Pick(Request{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p.Record().ID()...)
		if done {
			p.Done(0, Result{})
		}
	}
	return string(out)
}

func TestWholeWeightsAreUsedAsTheyAre(t *testing.T) {
	got := integerWeights([]float64{5, 0, 1, 10_000, MaxWeight})
	if want := []uint64{5, 0, 1, 10_000, 1 << 32}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBinaryFractionsStayExactAndSmall(t *testing.T) {
	for _, tc := range []struct {
		in   []float64
		want []uint64
	}{
		{[]float64{0.5, 1, 2.25}, []uint64{2, 4, 9}},
		{[]float64{0.5}, []uint64{1}},
		{[]float64{0, 0.25, 0.25}, []uint64{0, 1, 1}},
		{[]float64{10_000, 1.5}, []uint64{20_000, 3}},
		{nil, []uint64{}},
	} {
		if got := integerWeights(tc.in); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%v became %v, want %v", tc.in, got, tc.want)
		}
	}
}

// The bounds that integerWeights states, for lists of every size and spread.
func TestScaledWeightsKeepTheirProportions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := 1 + r.IntN(50)
		weights := make([]float64, n)
		sum, spread := 0.0, r.Float64()*52
		for i := range weights {
			weights[i] = min(max(math.Exp2(r.Float64()*spread-20), MinWeight), MaxWeight)
			sum += weights[i]
		}
		ints := integerWeights(weights)
		total := float64(sumOf(ints))
		if total > 1<<sumBits+float64(n) {
			t.Fatalf("the sum is %v", total)
		}
		// The scale is a power of two: that of the greatest, which loses least.
		top := 0
		for i, w := range weights {
			if w > weights[top] {
				top = i
			}
		}
		scale := math.Exp2(math.Round(math.Log2(float64(ints[top]) / weights[top])))
		for i, w := range weights {
			off := math.Abs(float64(ints[i])/scale - w)
			if w >= sum/(1<<30) && off > w/(1<<20) || off > sum/(1<<sumBits)*2 {
				t.Fatalf("weight %v of %v became %d, off by %v", w, sum, ints[i], off/w)
			}
			if ints[i] == 0 {
				t.Fatalf("weight %v of %v became 0", w, sum)
			}
		}
	}
}

func TestTrap21NoWeightBreaksTheIntegers(t *testing.T) {
	bad := []float64{math.NaN(), -1, math.Inf(-1), math.Inf(1), 1e300, 5e-324, 1e-300, 0, 0.3, 7}
	ints := integerWeights(bad)
	for i, w := range bad {
		if (w > 0) != (ints[i] > 0) {
			t.Errorf("%v became %d", w, ints[i])
		}
	}
	for _, none := range [][]float64{nil, {0}, {math.NaN(), -3}} {
		if sum := sumOf(integerWeights(none)); sum != 0 {
			t.Errorf("%v became %d", none, sum)
		}
	}
}

func testStrideScaleVectors(t *testing.T) {
	for _, c := range vectorsOf(t, "static_stride_scale", 3) {
		var in struct {
			Weights json.RawMessage `json:"weights"`
		}
		var want struct {
			Scaled []uint64 `json:"grpc_core_scaled"`
		}
		c.read(t, &in, &want)
		var weights []float64
		if json.Unmarshal(in.Weights, &weights) != nil {
			var repeated struct {
				First, Others float64
				N             int
			}
			if err := json.Unmarshal(in.Weights, &repeated); err != nil {
				t.Fatal(err)
			}
			weights = append(weights, repeated.First)
			for range repeated.N - 1 {
				weights = append(weights, repeated.Others)
			}
		}
		got := strideScale(weights)
		if !reflect.DeepEqual(got[:len(want.Scaled)], want.Scaled) {
			t.Errorf("%s: %v, want %v", c.ID, got[:len(want.Scaled)], want.Scaled)
		}
		for _, w := range got[len(want.Scaled):] {
			if w != want.Scaled[len(want.Scaled)-1] {
				t.Errorf("%s: one of the others is %d", c.ID, w)
			}
		}
	}
}

func TestStrideScaleStandsAnyReport(t *testing.T) {
	whole := uint64(maxStrideWeight)
	for _, tc := range []struct {
		in   []float64
		want []uint64
	}{
		{nil, []uint64{}},
		{[]float64{0, 0, 0}, []uint64{whole, whole, whole}},
		{[]float64{0, 3, math.NaN()}, []uint64{whole, whole, whole}}, // one known is none
		{[]float64{10, math.Inf(1), 5, -2}, []uint64{65535, 49151, 32768, 49151}},
		{[]float64{math.MaxFloat64, math.MaxFloat64, 5e-324}, []uint64{65535, 65535, 437}},
	} {
		if got := strideScale(tc.in); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%v became %v, want %v", tc.in, got, tc.want)
		}
	}
}
