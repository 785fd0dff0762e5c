package picker_test

import (
	"math"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel/picker"
)

func TestValidateNamesEveryProblem(t *testing.T) {
	err := picker.Validate([]picker.Endpoint{
		{ID: ""},
		{ID: "a", Weight: picker.WeightOf(-1)},
		{ID: "b", Weight: picker.WeightOf(math.NaN())},
		{ID: "c", Weight: picker.WeightOf(math.Inf(1))},
		{ID: "d", Weight: picker.WeightOf(1e-300)},
		{ID: "e", Weight: picker.WeightOf(1e300)},
		{ID: "a"},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"endpoint 0: ID is empty",
		`endpoint 1 ("a"): Weight is -1, want 0 or 1e-06 to 4.294967296e+09`,
		`endpoint 2 ("b"): Weight is NaN`,
		`endpoint 3 ("c"): Weight is +Inf`,
		`endpoint 4 ("d"): Weight is 1e-300`,
		`endpoint 5 ("e"): Weight is 1e+300`,
		`endpoint 6: ID "a" is that of endpoint 1`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func TestValidateBoundsItsOwnLength(t *testing.T) {
	list := make([]picker.Endpoint, 5000)
	err := picker.Validate(list)
	if err == nil || len(err.Error()) > 4000 || !strings.Contains(err.Error(), "and 4984 more problems") {
		t.Errorf("5,000 problems give %d bytes: %.200v", len(err.Error()), err)
	}
}

func TestValidateAcceptsTheBounds(t *testing.T) {
	if err := picker.Validate(nil); err != nil {
		t.Errorf("empty list: %v", err)
	}
	if err := picker.Validate([]picker.Endpoint{
		{ID: "absent"},
		{ID: "zero", Weight: picker.WeightOf(0)},
		{ID: "least", Weight: picker.WeightOf(picker.MinWeight)},
		{ID: "most", Weight: picker.WeightOf(picker.MaxWeight)},
	}); err != nil {
		t.Error(err)
	}
}

func TestBug19AbsentWeightIsOneAndZeroIsDrained(t *testing.T) {
	var absent picker.Weight
	if absent.IsSet() || absent.Value() != 1 {
		t.Errorf("absent: set %v, value %v", absent.IsSet(), absent.Value())
	}
	if zero := picker.WeightOf(0); !zero.IsSet() || zero.Value() != 0 {
		t.Errorf("zero: set %v, value %v", zero.IsSet(), zero.Value())
	}
	for _, p := range benchPolicies {
		_, s := build(t, p.policy, []picker.Endpoint{{ID: "a"}, {ID: "b", Weight: picker.WeightOf(0)}, {ID: "c"}}, nil)
		for range 1000 {
			pick, i, err := s.Pick(picker.Request{}, 0)
			if err != nil || i == 1 {
				t.Fatalf("%s: picked %d, %v", p.name, i, err)
			}
			pick.Done(0, picker.Result{Outcome: picker.Success})
		}
	}
}

func TestBug18AllWeightsZeroAreEqualAndReported(t *testing.T) {
	list := []picker.Endpoint{{ID: "a", Weight: picker.WeightOf(0)}, {ID: "b", Weight: picker.WeightOf(0)}}
	for _, p := range benchPolicies {
		_, s := build(t, p.policy, list, nil)
		if !s.Members().AllDrained() || s.Len() != 2 {
			t.Fatalf("%s: AllDrained %v, %d available", p.name, s.Members().AllDrained(), s.Len())
		}
		var n [2]int
		for range 2000 {
			pick, i, err := s.Pick(picker.Request{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			n[i]++
			pick.Done(0, picker.Result{Outcome: picker.Success})
		}
		if n[0] < 800 || n[1] < 800 {
			t.Errorf("%s: shares %v of 2,000", p.name, n)
		}
	}
}
