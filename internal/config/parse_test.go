package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/ewma"
	"github.com/evenkeel/evenkeel/picker"
)

func TestParseReadsBothFormsOfAPolicy(t *testing.T) {
	for text, want := range map[string]evenkeel.Policy{
		`{"policy": "round_robin"}`:                        picker.RoundRobin{},
		`{"policy": {"round_robin": {}}}`:                  picker.RoundRobin{},
		`{"policy": {"round_robin": null}}`:                picker.RoundRobin{},
		`{"policy": "random"}`:                             picker.Random{},
		`{"policy": "p2c"}`:                                picker.P2C{},
		`{"policy": {"p2c": {"signal": null}}}`:            picker.P2C{},
		`{"policy": {"p2c": {"signal": "latency"}}}`:       picker.P2C{Signal: picker.Latency},
		`{"policy": {"p2c": {"signal": "in_flight"}}}`:     picker.P2C{Signal: picker.InFlight},
		"\n\t {\"policy\": \"random\", \"strict\": true} ": picker.Random{},
		`{"policy": "adaptive"}`:                           picker.Adaptive{},
		`{"policy": {"p2c": {"choices": 3.0}}}`:            picker.P2C{Choices: 3},
		`{"policy": {"least": {"signal": "peak_hold"}}}`:   picker.Least{Signal: picker.PeakHold},
		`{"policy": {"least": {"signal": "least_time"}}}`:  picker.Least{Signal: picker.LeastTime{}},
		`{"policy": {"p2c": {"signal": {"peak_ewma": {"form": "alpha", "tau": "1s", "alpha": 0.3, "plain": true}}}}}`: picker.P2C{
			Signal: picker.PeakEWMA{Form: ewma.AlphaForm, Tau: time.Second, Alpha: 0.3, Plain: true}},
	} {
		c, report, err := Parse([]byte(text))
		if err != nil || c.Policy != want || len(report.Unknown) != 0 {
			t.Errorf("Parse(%s) = %#v, %v, %v, want policy %#v", text, c, report, err, want)
		}
	}
}

// allPolicies and allFields are what error texts list.
var (
	allPolicies = strings.Join(names(policies()), ", ")
	allFields   = strings.Join(fieldNames(configFields), ", ")
)

func TestParseOfNothingIsTheDefault(t *testing.T) {
	for _, text := range []string{"", " \n", "null", "{}", `{"policy": null}`, `{"strict": true}`, `{"strict": null}`} {
		c, report, err := Parse([]byte(text))
		if err != nil || !reflect.DeepEqual(c, evenkeel.Config{}) || len(report.Unknown) != 0 {
			t.Errorf("Parse(%q) = %#v, %v, %v, want the zero config", text, c, report, err)
		}
	}
}

func TestParseReportsUnknownFieldsAtEveryLevel(t *testing.T) {
	const text = `{"zeta": [{"policy": 1}], "policy": {"p2c": {"singal": "latency", "signal": "in_flight", "a.b": {}}}, "Policy": 1}`
	want := []string{"Policy", `policy.p2c."a.b"`, "policy.p2c.singal", "zeta"}

	c, report, err := Parse([]byte(text))
	if err != nil || c.Policy != (picker.P2C{Signal: picker.InFlight}) {
		t.Errorf("Parse = %#v, %v, want what is known", c, err)
	}
	if !slices.Equal(report.Unknown, want) {
		t.Errorf("Report.Unknown is %q, want %q", report.Unknown, want)
	}

	c, report, err = Parse([]byte(`{"strict": true, ` + text[1:]))
	if err == nil || c.Policy != nil || !slices.Equal(report.Unknown, want) {
		t.Errorf("strict: Parse = %#v, %q, %v, want an error and the same report", c, report.Unknown, err)
	}
	for _, problem := range []string{
		"config: Policy is not a known field, want one of " + allFields + " (nearest: policy)",
		`config: policy.p2c."a.b" is not a known field, want one of signal, choices (nearest: signal)`,
		"config: policy.p2c.singal is not a known field, want one of signal, choices (nearest: signal)",
		"config: zeta is not a known field, want one of " + allFields + " (nearest: ",
	} {
		if !strings.Contains(err.Error(), problem) {
			t.Errorf("strict: the error lacks %q:\n%v", problem, err)
		}
	}
}

func TestParseRefusesWrongValuesEvenWhenNotStrict(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                                   "config: the config is [], want an object",
		`"random"`:                             `config: the config is "random", want an object`,
		`{"policy": 1}`:                        "config: policy is 1, want one of " + allPolicies,
		`{"policy": "rond_robin"}`:             `config: policy is "rond_robin", want one of ` + allPolicies + ` (nearest: round_robin)`,
		`{"policy": {"Random": {}}}`:           `config: policy is "Random", want one of ` + allPolicies + ` (nearest: random)`,
		`{"policy": {}}`:                       "config: policy is {}, want one policy, one of " + allPolicies,
		`{"policy": {"p2c": {}, "random":{}}}`: `config: policy is {"p2c": {}, "random":{}}, want one policy`,
		`{"policy": {"p2c": []}}`:              "config: policy.p2c is [], want an object",
		`{"policy": {"p2c": {"signal": 1}}}`:   "config: policy.p2c.signal is 1, want one of in_flight, latency, peak_hold, log_mean, least_time, peak_ewma",
		`{"policy": {"p2c": {"signal": ""}}}`:  `config: policy.p2c.signal is "", want one of in_flight, latency, peak_hold, log_mean, least_time, peak_ewma`,
		`{"policy": {"p2c": {"signal": "latncy"}}}`: `config: policy.p2c.signal is "latncy", ` +
			"want one of in_flight, latency, peak_hold, log_mean, least_time, peak_ewma (nearest: latency)",
		`{"strict": "yes"}`:                                                    `config: strict is "yes", want true or false`,
		`{"policy": "random"`:                                                  "config: the text is no JSON: unexpected end",
		`{"policy": "random"} {}`:                                              "config: the text is no JSON: invalid character '{' after",
		strings.Repeat("[", 65) + strings.Repeat("]", 65):                      "config: the text nests 65 deep, want at most 64",
		`{"x": "` + strings.Repeat("x", maxSize) + `"}`:                        "config: the text has 65545 bytes, want at most 65536",
		`{"policy": "` + strings.Repeat("é", 1000) + `"}`:                      "...",
		`{"x": ` + strings.Repeat("[", 9999) + strings.Repeat("]", 9999) + `}`: "config: the text nests 10000 deep",
	} {
		c, _, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || c.Policy != nil {
			t.Errorf("Parse(%s) = %#v, %v, want an error with %q", clip(text), c, err, want)
		}
		if err != nil && len(err.Error()) > 400 {
			t.Errorf("Parse(%s): the error has %d bytes, want it clipped", clip(text), len(err.Error()))
		}
	}
}

func TestParseFindsAllProblemsAtOnce(t *testing.T) {
	_, report, err := Parse([]byte(`{"strict": true, "polcy": {}, "policy": {"p2c": {"signal": "x", "foo": 1}}}`))
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("Parse: %v, want joined problems", err)
	}
	for _, want := range []string{"policy.p2c.signal is", "polcy is not", "policy.p2c.foo is not"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	if len(joined.Unwrap()) == 0 || len(report.Unknown) != 2 {
		t.Errorf("Report.Unknown is %q, want the two unknown fields", report.Unknown)
	}
}

func TestParseTakesTheLastOfEqualKeys(t *testing.T) {
	c, report, err := Parse([]byte(`{"policy": "no such", "policy": {"p2c": {"signal": 1, "signal": "in_flight"}}}`))
	if err != nil || c.Policy != (picker.P2C{Signal: picker.InFlight}) || len(report.Unknown) != 0 {
		t.Errorf("Parse = %#v, %v, %v, want the last value of each key", c, report, err)
	}
}

func TestParseDoesNotTakeBracketsInStringsForDepth(t *testing.T) {
	text := `{"x": "` + strings.Repeat(`[{\"\\`, 100) + `"}`
	if _, report, err := Parse([]byte(text)); err != nil || len(report.Unknown) != 1 {
		t.Errorf("Parse = %v, %v, want one unknown field", report, err)
	}
}

func TestIntegersMayArriveAsDoubles(t *testing.T) {
	type limits struct{ Size int }
	fields := []field[limits]{integer("size", func(l *limits) *int { return &l.Size })}
	for text, want := range map[string]int{"2": 2, "2.0": 2, "2e3": 2000, "-7": -7, "0": 0} {
		var d decoder
		var got limits
		readObject(&d, "limits", []byte(`{"size": `+text+`}`), fields, &got)
		if _, err := d.result(); err != nil || got.Size != want {
			t.Errorf("%s: got %d, %v, want %d", text, got.Size, err, want)
		}
		again, err := writeObject(fields, &got)
		if n, ok := again["size"]; err != nil || ok != (want != 0) || ok && n != want {
			t.Errorf("%s: written as %v, %v", text, again, err)
		}
	}
	for _, text := range []string{"2.5", "1e300", "1e999", `"2"`, "true", "[2]", "9007199254740993.5"} {
		var d decoder
		got := limits{Size: 1}
		readObject(&d, "limits", []byte(`{"size": `+text+`}`), fields, &got)
		want := "config: limits.size is " + text + ", want a whole number"
		if _, err := d.result(); err == nil || err.Error() != want || got.Size != 1 {
			t.Errorf("%s: got %d, %v, want the error %q", text, got.Size, err, want)
		}
	}
}

func TestNearestIsTheFewestEditsAway(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "abd", 1},
		{"abc", "ac", 1}, {"kitten", "sitting", 3}, {"round_robin", "robin", 6}, {"singal", "signal", 2},
	} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("distance(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
	if got := nearest("randm", []string{"round_robin", "random", "ranbm"}); got != "random" {
		t.Errorf("nearest = %q, want the first of the nearest", got)
	}
}

func TestMarshalRefusesWhatHasNoJSONForm(t *testing.T) {
	for _, p := range []evenkeel.Policy{custom{}, picker.P2C{Signal: customSignal{}}} {
		text, err := Marshal(evenkeel.Config{Policy: p})
		if err == nil || !strings.HasPrefix(err.Error(), "config: ") {
			t.Errorf("Marshal of %T = %s, %v, want an error", p, text, err)
		}
	}
	if text, err := Marshal(evenkeel.Config{Policy: picker.P2C{Signal: picker.BuiltinSignal(99)}}); err == nil {
		t.Errorf("Marshal of an invalid config = %s, want an error", text)
	}
	if text, err := Marshal(evenkeel.Config{Policy: custom{err: errors.ErrUnsupported}}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Marshal of an invalid config = %s, %v, want the policy's own error", text, err)
	}
}

// custom is a policy of a user's own.
type custom struct {
	picker.Policy
	err error
}

func (c custom) Validate() error { return c.err }

// customSignal cannot be compared.
type customSignal struct {
	picker.Signal
	_ []int
}
