package picker_test

import (
	"math"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel/picker"
)

func TestLoadTableIsObeyedAndChecked(t *testing.T) {
	table := &picker.LoadTable{}
	_, s := build(t, picker.Least{Signal: table}, endpoints(3), nil)
	if err := table.Set(map[string]float64{"e0": 5, "e1": 2, "e2": 3}); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if _, i, _ := s.Pick(picker.Request{}, 0); i != 1 {
			t.Fatalf("picked %d, want 1: own counts must not matter", i)
		}
	}
	err := table.Set(map[string]float64{"e0": -1, "e1": math.NaN(), "e2": 0})
	if err == nil || !strings.Contains(err.Error(), `"e0" is -1`) || !strings.Contains(err.Error(), `"e1" is NaN`) {
		t.Errorf("bad loads: %v", err)
	}
	if _, i, _ := s.Pick(picker.Request{}, 0); i != 1 {
		t.Error("a refused table changed the choice")
	}
	if err := table.Set(map[string]float64{"e0": 4, "e1": 6}); err != nil {
		t.Fatal(err)
	}
	if a, b := table.Cost(s.Record(2), 0), table.Cost(s.Record(0), 0); a != b {
		t.Errorf("an endpoint that is not in the table costs %d, want the lower median %d", a, b)
	}
}
