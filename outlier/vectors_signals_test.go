package outlier_test

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/outlier"
)

// The vectors of slow start that are in package picker's file. HAProxy's is a formula of its own, in whole sixteenths.
func TestVectorsOfSlowStartAmongTheSignals(t *testing.T) {
	raw, err := os.ReadFile("../picker/testdata/signals-and-rules.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct {
			ID     string
			Input  json.RawMessage
			Expect json.RawMessage
		}
	}
	into(t, raw, &file)
	ran, left, rows := 0, 0, 0
	for _, v := range file.Vectors {
		switch {
		case !strings.HasPrefix(v.ID, "slow-start"):
			continue
		case v.ID != "slow-start-envoy":
			left++
			continue
		}
		ran++
		var in struct {
			Window float64 `json:"window_s"`
			Min    float64
			Values [][2]float64 // seconds, aggression
		}
		var want struct{ Factor []float64 }
		into(t, v.Input, &in)
		into(t, v.Expect, &want)
		for i, x := range in.Values {
			rows++
			got := outlier.SlowStart(time.Duration(math.Round(x[0]*1e9)), time.Duration(in.Window*1e9), x[1], in.Min)
			if math.Abs(got-want.Factor[i]) > 1e-9 {
				t.Errorf("after %v s with aggression %v: %v, want %v", x[0], x[1], got, want.Factor[i])
			}
		}
	}
	if ran != 1 || left != 1 || rows != 10 {
		t.Errorf("ran %d of %d vectors with %d rows, want 1 of 2 with 10", ran, ran+left, rows)
	}
}
