package limit

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"
)

type vector struct {
	ID     string
	Area   string
	Config struct {
		TTL         int64   `json:"ttl_ms"`
		PerSecond   float64 `json:"min_per_s"`
		Share       float64 `json:"pct"`
		MaxRequests int64   `json:"max_requests"`
	}
	Steps []vectorStep
}

type vectorStep struct {
	Op       string
	At       int64 `json:"t_ms"`
	N        int
	Granted  *int
	Balance  *int64
	InFlight *int64 `json:"in_flight"`
	Ejected  *[]string
}

// areasHere are run here; the others by who has the thing, or by nobody, for a reason.
var areasHere = map[string]func(*testing.T, vector){"retry.budget": testBudgetVector, "concurrency": testCapVector}

var areasElsewhere = map[string]string{
	"outlier.envoy":   "ejection",
	"outlier.a50":     "ejection",
	"outlier.breaker": "ejection",
	"panic":           "ejection",
	"classify":        "outcomes",
	"weights":         "load reports",
	"hedge":           "the HTTP client's hedging",
	"slowstart":       "package outlier, and the pool",
	"health":          "package health",
	"simulation":      "the simulator; the limit's own part is incident_test.go",
	"retry.throttle":  "gRPC's own formula, which its channel applies",
	"throttle":        "the formulas of others; our limit adapts instead",
}

func TestVectorsOfLimitsAndBudgets(t *testing.T) {
	raw, err := os.ReadFile("testdata/reliability.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []json.RawMessage }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for _, one := range file.Vectors {
		var v vector
		if err := json.Unmarshal(one, &struct{ ID, Area *string }{&v.ID, &v.Area}); err != nil {
			t.Fatal(err)
		}
		run, here := areasHere[v.Area]
		if !here {
			if areasElsewhere[v.Area] == "" {
				t.Errorf("%s: nobody runs area %s", v.ID, v.Area)
			}
			continue
		}
		if err := json.Unmarshal(one, &v); err != nil {
			t.Fatalf("%s: %v", v.ID, err)
		}
		wholly(t, one)
		ran[v.Area]++
		t.Run(v.ID, func(t *testing.T) { run(t, v) })
	}
	if ran["retry.budget"] != 4 || ran["concurrency"] != 3 {
		t.Errorf("ran %v, want 4 of retry.budget and 3 of concurrency, which is all in the file", ran)
	}
}

// wholly refuses a vector whose steps or settings say what no test here would look at.
func wholly(t *testing.T, one json.RawMessage) {
	t.Helper()
	var parts struct{ Config, Steps json.RawMessage }
	if err := json.Unmarshal(one, &parts); err != nil {
		t.Fatal(err)
	}
	var v vector
	for part, to := range map[*json.RawMessage]any{&parts.Config: &v.Config, &parts.Steps: &v.Steps} {
		d := json.NewDecoder(bytes.NewReader(*part))
		d.DisallowUnknownFields()
		if err := d.Decode(to); err != nil && len(*part) > 0 {
			t.Error(err)
		}
	}
	if len(v.Steps) == 0 {
		t.Error("no steps")
	}
}

func orNone(v float64) float64 {
	if v == 0 {
		return None
	}
	return v
}

func testBudgetVector(t *testing.T, v vector) {
	b := newBudget(t, BudgetConfig{
		Window:    time.Duration(v.Config.TTL) * time.Millisecond,
		PerSecond: orNone(v.Config.PerSecond),
		Percent:   orNone(v.Config.Share * 100),
		AtOnce:    MaxAtOnce, // these vectors are about the window alone
	})
	for i, s := range v.Steps {
		now, granted := s.At*ms, 0
		for range s.N {
			switch s.Op {
			case "deposit":
				b.Begin(now)
			case "withdraw":
				if _, ok := b.Try(now); ok {
					granted++
				}
			default:
				t.Fatalf("step %d: unknown operation %s", i, s.Op)
			}
		}
		if s.Granted != nil && granted != *s.Granted {
			t.Errorf("step %d: granted %d, want %d", i, granted, *s.Granted)
		}
		if got := b.Balance(now); s.Balance != nil && got != *s.Balance {
			t.Errorf("step %d: balance %d, want %d", i, got, *s.Balance)
		}
	}
}

// testCapVector runs the vectors on an endpoint's cap; without one of its own a vector has
// a cap of one.
func testCapVector(t *testing.T, v vector) {
	most := max(v.Config.MaxRequests, 1)
	var c Cap
	var permits []Permit
	var last Permit
	for i, s := range v.Steps {
		granted := 0
		for range s.N {
			switch s.Op {
			case "acquire":
				if c.Acquire(most) {
					granted++
					permits = append(permits, PermitOf(nil, &c))
				}
			case "done":
				permits[0].Release()
				permits = permits[1:]
			case "done_same":
				permits[0].Release()
			case "reject":
				last = rejected(t)
			default:
				t.Fatalf("step %d: unknown operation %s", i, s.Op)
			}
		}
		if s.Op == "done_same" {
			permits = permits[1:]
		}
		if s.Granted != nil && granted != *s.Granted {
			t.Errorf("step %d: granted %d, want %d", i, granted, *s.Granted)
		}
		if s.InFlight != nil && c.InFlight() != *s.InFlight {
			t.Errorf("step %d: %d in flight, want %d", i, c.InFlight(), *s.InFlight)
		}
		if s.Ejected != nil && (len(*s.Ejected) != 0 || last != (Permit{})) {
			t.Errorf("step %d: want nobody ejected, and no permit", i)
		}
	}
}

// rejected makes the pool's limit refuse a request: the error is our own by its type, and
// nothing was observed that could be taken for a result.
func rejected(t *testing.T) Permit {
	l, now := distressed(t, Config{}, 1)
	if l.Acquire() || !errors.Is(l.Err(), ErrOverloaded) {
		t.Error("not rejected with ErrOverloaded")
	}
	if seen := l.collect(); seen.total() != 0 {
		t.Errorf("a rejection was observed as %v", seen)
	}
	l.Sweep(now, 1)
	return Permit{}
}
