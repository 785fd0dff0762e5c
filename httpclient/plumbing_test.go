package httpclient

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/ewma"
	"github.com/evenkeel/evenkeel/internal/config"
	"github.com/evenkeel/evenkeel/picker"
)

// inForce is the configuration that a pool has, which it shows to nobody.
func inForce(pool *evenkeel.Pool[*endpoint]) evenkeel.Config {
	f := reflect.ValueOf(pool).Elem().FieldByName("config")
	return *(*evenkeel.Config)(unsafe.Pointer(f.UnsafeAddr()))
}

// parsed is the configuration that a text stands for.
func parsed(t *testing.T, text string) evenkeel.Config {
	t.Helper()
	c, report, err := config.Parse([]byte(text))
	if err != nil || len(report.Unknown) > 0 {
		t.Fatalf("%s: %v, %v", text, report, err)
	}
	return c
}

// Each parameter with a value of its own, so that none can take another's place.
func TestT26ConfigOfJSONReachesThePool(t *testing.T) {
	bias := 0.25
	for text, want := range map[string]evenkeel.Policy{
		`{}`:                        nil,
		`{"policy": "round_robin"}`: picker.RoundRobin{},
		`{"policy": {"weighted_least_request": {"active_request_bias": 0.25}}}`: picker.WeightedLeastRequest{ActiveRequestBias: &bias},
		`{"policy": {"p2c": {"choices": 5, "signal": "log_mean"}}}`:             picker.P2C{Choices: 5, Signal: picker.LogMean},
		`{"policy": {"least": {"signal": "least_time"}}}`:                       picker.Least{Signal: picker.LeastTime{}},
		`{"policy": {"p2c": {"signal": {"peak_ewma": {"form": "alpha", "tau": "7s", "alpha": 0.125, "plain": true}}}}}`: picker.P2C{
			Signal: picker.PeakEWMA{Form: ewma.AlphaForm, Tau: 7 * time.Second, Alpha: 0.125, Plain: true}},
	} {
		tr := stubbed(t, &Transport{Resolver: Static{{Addr: "10.0.0.1"}}, Config: parsed(t, text)}, stubAnswer)
		roundTripAll(t, tr)
		if got := inForce(onlyGroup(tr).pool); !reflect.DeepEqual(got, evenkeel.Config{Policy: want}) {
			t.Errorf("%s: the pool has %+v, want policy %+v", text, got, want)
		}
		tr.Close()
	}
}

func TestT26SettingsReachTheirPlaces(t *testing.T) {
	tr := stubbed(t, &Transport{Resolver: Static{{Addr: "10.0.0.1"}}, MaxTargets: 7, TargetIdleTimeout: 11 * time.Second}, stubAnswer)
	roundTripAll(t, tr)
	if f := tr.running(); f.maxTargets != 7 || f.targetIdle != 11*time.Second {
		t.Errorf("MaxTargets is %d and TargetIdleTimeout %v, want 7 and 11s", f.maxTargets, f.targetIdle)
	}
}

// Every number and switch of Base has a value of its own.
func TestT26EveryNumberOfBaseReachesTheEndpoints(t *testing.T) {
	base := &http.Transport{HTTP2: &http.HTTP2Config{}, Protocols: protocols((*http.Protocols).SetHTTP1)}
	n := setNumbers(reflect.ValueOf(base).Elem(), 1)
	n = setNumbers(reflect.ValueOf(base.HTTP2).Elem(), n)
	if n < 15 {
		t.Fatalf("only %d numbers", n)
	}
	tmpl, err := template(base)
	if err != nil {
		t.Fatal(err)
	}
	got := fixedDial(tmpl, "10.0.0.1:80")
	sameNumbers(t, "Base", reflect.ValueOf(base).Elem(), reflect.ValueOf(got).Elem())
	sameNumbers(t, "Base.HTTP2", reflect.ValueOf(base.HTTP2).Elem(), reflect.ValueOf(got.HTTP2).Elem())
}

// setNumbers sets the numbers of a struct to n and those after it, and its switches, and
// returns the next n.
func setNumbers(v reflect.Value, n int64) int64 {
	for _, f := range v.Fields() {
		switch {
		case !f.CanSet():
		case f.CanInt():
			f.SetInt(n)
			n++
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		}
	}
	return n
}

func sameNumbers(t *testing.T, name string, want, got reflect.Value) {
	t.Helper()
	for i := range want.NumField() {
		f := want.Field(i)
		if want.Type().Field(i).IsExported() && (f.CanInt() || f.Kind() == reflect.Bool) && !f.Equal(got.Field(i)) {
			t.Errorf("%s.%s is %v, want %v", name, want.Type().Field(i).Name, got.Field(i), f)
		}
	}
}

// policyNames are those of the table of policies.
func policyNames(t *testing.T) []string {
	t.Helper()
	_, _, err := config.Parse([]byte(`{"policy": "?"}`))
	if err == nil {
		t.Fatal("a policy without a name")
	}
	_, list, _ := strings.Cut(err.Error(), "one of ")
	list, _, _ = strings.Cut(list, " (")
	return strings.Split(list, ", ")
}
