package grpcbalancer

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/grpc/balancer"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

func TestRegisteredUnderItsName(t *testing.T) {
	if b := balancer.Get("evenkeel"); b == nil || b.Name() != Name {
		t.Fatalf("balancer.Get: %v", b)
	}
	if _, ok := balancer.Get(Name).(balancer.ConfigParser); !ok {
		t.Error("the builder parses no config")
	}
}

// Every form in which an empty config arrives, and one of each policy, comes back
// the same from the round that parents make: marshal, then parse.
func TestConfigSurvivesBeingMarshalledAndParsed(t *testing.T) {
	for _, c := range []struct {
		text string
		want evenkeel.Config
	}{
		{"", evenkeel.Config{}},
		{"null", evenkeel.Config{}},
		{"{}", evenkeel.Config{}},
		{`{"a_newer_field": {"x": [1]}}`, evenkeel.Config{}},
		{`{"policy": "round_robin"}`, evenkeel.Config{Policy: picker.RoundRobin{}}},
		{`{"policy": {"random": {}}}`, evenkeel.Config{Policy: picker.Random{}}},
		{`{"policy": {"p2c": {"signal": "in_flight"}}}`, evenkeel.Config{Policy: picker.P2C{Signal: picker.InFlight}}},
	} {
		first := parse(t, c.text)
		if got := first.(*lbConfig).config; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.text, got, c.want)
		}
		text, err := json.Marshal(map[string]any{"child": first})
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		var child struct{ Child json.RawMessage }
		if err := json.Unmarshal(text, &child); err != nil {
			t.Fatal(err)
		}
		if got := parse(t, string(child.Child)).(*lbConfig).config; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v after %s, want %+v", c.text, got, text, c.want)
		}
	}
}

func TestWrongConfigsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                                   "JSON",
		`[]`:                                  "object",
		`{"policy": "fastest"}`:               "fastest",
		`{"policy": {"p2c": {"signal": 1}}}`:  "policy.p2c.signal",
		`{"strict": true, "polcy": "random"}`: "polcy",
	} {
		if _, err := (builder{}).ParseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one about %s", text, err, want)
		}
	}
}
