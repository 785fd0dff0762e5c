package grpcbalancer

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/ewma"
	"github.com/evenkeel/evenkeel/internal/config"
	"github.com/evenkeel/evenkeel/picker"
)

// poolsConfig is the configuration that a pool has, which it shows to nobody.
func poolsConfig(pool *evenkeel.Pool[*endpoint]) evenkeel.Config {
	f := reflect.ValueOf(pool).Elem().FieldByName("config")
	return *(*evenkeel.Config)(unsafe.Pointer(f.UnsafeAddr()))
}

// Each parameter with a value of its own, so that none can take another's place, with the
// first list and as an update, as it comes and as a parent hands it on.
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
		handed, err := json.Marshal(parse(t, text))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{text, string(handed)} {
			for _, before := range []string{"", `{"policy": "random"}`} {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, text)
					if before != "" {
						r.config = parse(t, before)
						r.up(at("a"))
						r.config = parse(t, text)
					}
					r.up(at("a"))
					if got := poolsConfig(r.policy.pool); !reflect.DeepEqual(got, evenkeel.Config{Policy: want}) {
						t.Errorf("%s after %q: the pool has %+v, want policy %+v", text, before, got, want)
					}
				})
			}
		}
	}
}

// known are the names that the error about a wrong one lists, after some text of it.
func known(t *testing.T, wrong, after string) []string {
	t.Helper()
	_, _, err := config.Parse([]byte(wrong))
	if err == nil {
		t.Fatalf("%s was taken", wrong)
	}
	_, list, _ := strings.Cut(err.Error(), after)
	list, _, _ = strings.Cut(strings.TrimPrefix(list, "one of "), " (")
	return strings.Split(list, ", ")
}

func policyNames(t *testing.T) []string { return known(t, `{"policy": "?"}`, "want ") }

func signalNames(t *testing.T) []string {
	return known(t, `{"policy": {"p2c": {"signal": "?"}}}`, "want ")
}
