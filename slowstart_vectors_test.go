package evenkeel_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
)

// slowVector is a vector of slow start as the file has it.
type slowVector struct {
	ID, Area string
	Config   struct {
		Window     int64   `json:"window_ms"`
		Aggression float64 `json:"aggression"`
		Min        float64 `json:"min_pct"`
	}
	Table []struct {
		T       int64   `json:"t_ms"`
		Elapsed int64   `json:"elapsed_ms"`
		Factor  float64 `json:"factor"`
		Share   float64 `json:"share"`
	}
}

// slowVectors returns those of a pool, by ID. The formula is tested where it is, in package outlier.
func slowVectors(t *testing.T) map[string]slowVector {
	t.Helper()
	raw, err := os.ReadFile("outlier/testdata/reliability.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []json.RawMessage }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	all := map[string]slowVector{}
	for _, raw := range file.Vectors {
		var v slowVector
		if json.Unmarshal(raw, &v) == nil && v.Area == "slowstart" && v.ID != "SS-01" { // others have other tables
			all[v.ID] = v
		}
	}
	if len(all) != 2 {
		t.Fatalf("%d vectors, want SS-02 and SS-03", len(all))
	}
	return all
}

// SS-02: from an ejection's end on, over an update of the list, and once more after a check that failed.
func TestSlowStartVectorOfAReturnThroughThePool(t *testing.T) {
	v := slowVectors(t)["SS-02"]
	c := rotating
	c.Outlier = &outlier.Config{}
	c.SlowStart = &evenkeel.SlowStart{Window: time.Duration(v.Config.Window) * time.Millisecond,
		Aggression: v.Config.Aggression, Floor: outlier.PercentOf(100 * v.Config.Min)}
	s := newSlow(t, c, 4)
	s.bad[2] = true
	s.send(time.Second, time.Millisecond)
	s.bad[2] = false
	for !s.stats("e2").Available {
		s.send(time.Millisecond, time.Millisecond)
	}
	from := s.now.Add(-time.Millisecond) // of the last request
	for _, row := range v.Table {
		s.pass(from.Add(time.Duration(row.T-v.Table[0].T) * time.Millisecond).Sub(s.now))
		if got := s.stats("e2").Share; math.Abs(got-row.Factor) > 0.002 {
			t.Errorf("%d ms after the return the share is %v, want %v", row.T-v.Table[0].T, got, row.Factor)
		}
		if row.Factor == 0.5 {
			slices.Reverse(s.list)
			s.replace()
			if got := s.stats("e2").Share; math.Abs(got-row.Factor) > 0.002 {
				t.Errorf("after an update it is %v, want %v", got, row.Factor)
			}
		}
	}
	s.state("e2", evenkeel.Failing, evenkeel.Checks)
	s.pass(2 * time.Second)
	s.state("e2", evenkeel.Ready, evenkeel.Checks)
	s.is("passed again", "e2", 0.1)
	s.pass(0)
	s.pass(5 * time.Second)
	s.is("5 s later", "e2", 0.5)
}

// SS-03: those that begin together share equally, by any policy.
func TestSlowStartVectorOfAllNewThroughThePool(t *testing.T) {
	v := slowVectors(t)["SS-03"]
	for _, tc := range allPolicies {
		s := newSlow(t, slowly(evenkeel.Config{Policy: tc.policy}), 1)
		s.pass(time.Second)
		s.update(1, 2, 3, 4) // a pool that is replaced as a whole
		from := s.now
		for _, row := range v.Table {
			s.send(from.Add(time.Duration(row.Elapsed)*time.Millisecond).Sub(s.now), time.Millisecond)
			clear(s.sent)
			s.send(500*time.Millisecond, 50*time.Microsecond)
			for i := 1; i <= 4; i++ {
				if got := float64(s.sent[i]) / 10_000; math.Abs(got-row.Share) > 0.03 {
					t.Errorf("%s: after %d ms e%d gets %.3f, want %v", tc.name, row.Elapsed, i, got, row.Share)
				}
			}
		}
	}
}
