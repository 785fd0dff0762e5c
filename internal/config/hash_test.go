package config

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

func TestHashPoliciesByTheirUsualNames(t *testing.T) {
	for _, tc := range []struct {
		text string
		want picker.Hash
	}{
		{`"maglev"`, picker.Hash{}},
		{`"ring_hash"`, picker.Hash{Table: picker.Ring}},
		{`"rendezvous"`, picker.Hash{Table: picker.Rendezvous}},
		{`{"maglev": {"size": 655373, "seed": 7}}`, picker.Hash{Size: 655373, Seed: 7}},
		{`{"ring_hash": {"points": 1000, "load_factor": 1.5, "min_capacity": 1}}`,
			picker.Hash{Table: picker.Ring, Points: 1000, LoadFactor: 1.5, MinCapacity: 1}},
		{`{"rendezvous": {"unbounded": true, "fallback": {"p2c": {"signal": "in_flight"}}, "sticky_keys": 1000, "sticky_ttl": "1h"}}`,
			picker.Hash{Table: picker.Rendezvous, Unbounded: true, Fallback: picker.P2C{Signal: picker.InFlight}, StickyKeys: 1000, StickyTTL: time.Hour}},
	} {
		c, report, err := Parse([]byte(`{"policy": ` + tc.text + `}`))
		if err != nil || len(report.Unknown) > 0 || c.Policy != evenkeel.Policy(tc.want) {
			t.Errorf("%s is %#v, %v, %v, want %#v", tc.text, c.Policy, report, err, tc.want)
		}
		roundTrip(t, evenkeel.Config{Policy: tc.want})
	}
}

func TestHashPoliciesWithWrongSettingsAreRefused(t *testing.T) {
	_, _, err := Parse([]byte(`{"policy": {"maglev": {"size": 1000, "load_factor": 1, "fallback": "maglev"}}}`))
	for _, want := range []string{"Hash.Size is 1000", "Hash.LoadFactor is 1,", "Hash.Fallback is a Hash"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// A seed survives readers that know no numbers but doubles.
func TestSeedsOf64BitsSurvive(t *testing.T) {
	for _, seed := range []uint64{0, 1, 1<<53 - 1, 1 << 53, 1<<53 + 1, math.MaxUint64} {
		want := evenkeel.Config{Policy: picker.Hash{Seed: seed}}
		text, err := Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var loose any
		if err := json.Unmarshal(text, &loose); err != nil {
			t.Fatal(err)
		}
		if text, err = json.Marshal(loose); err != nil {
			t.Fatal(err)
		}
		if got, _, err := Parse(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %#v, %v, want %#v", text, got, err, want)
		}
	}
	for _, text := range []string{`-1`, `1.5`, `9007199254740992`, `9007199254740993`, `9007199254740991.9`, `1e16`, `18446744073709551615`, `"18446744073709551616"`, `"-1"`, `"x"`, `true`, `[]`} {
		_, _, err := Parse([]byte(`{"policy": {"maglev": {"seed": ` + text + `}}}`))
		if err == nil || !strings.Contains(err.Error(), "policy.maglev.seed is ") {
			t.Errorf("the seed %s: %v", text, err)
		}
	}
	if c, _, err := Parse([]byte(`{"policy": {"maglev": {"seed": 1.5e3}}}`)); err != nil || c.Policy != evenkeel.Policy(picker.Hash{Seed: 1500}) {
		t.Errorf("the seed 1.5e3 is %#v, %v", c.Policy, err)
	}
}
