package health

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

const (
	ms  = int64(time.Millisecond)
	sec = int64(time.Second)
)

type vector struct {
	ID     string
	Area   string
	Config struct {
		Rise       int     `json:"healthy_threshold"`
		Fall       int     `json:"unhealthy_threshold"`
		Window     int64   `json:"window_ms"`
		Aggression float64 `json:"aggression"`
		Least      float64 `json:"min_pct"`
	}
	Checks  []string
	Healthy []bool `json:"healthy_after"`
	Table   []vectorRow
}

type vectorRow struct {
	// Of slowstart.
	Weight     float64
	Elapsed    int64 `json:"elapsed_ms"`
	Window     int64 `json:"window_ms"`
	Aggression float64
	Least      float64 `json:"min_pct"`
	Effective  float64
	At         int64 `json:"t_ms"`
	Factor     float64
	Share      float64
	// Of health.
	Mode   string
	U      float64
	Jitter float64
	Millis int64 `json:"ms"`
	AtMin  int64 `json:"min_ms"`
}

var vectorTests = map[string]func(*testing.T, vector) (rows int){
	"HC-01": testThresholds, "HC-04": testThresholds, "HC-05": testThresholds,
	"HC-06": testThresholds, "HC-07": testThresholds, "HC-08": testThresholds,
	"HC-09": testDetection, "HC-11": testJitter,
	"SS-01": testFactors, "SS-02": testRampAgain, "SS-03": testAllNew,
}

// All vectors of health checks and slow start are run here, each row of each.
func TestVectorsOfHealthAndSlowStart(t *testing.T) {
	raw, err := os.ReadFile("testdata/reliability.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []json.RawMessage }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	ran, rows := map[string]int{}, 0
	for _, one := range file.Vectors {
		var v vector
		if err := json.Unmarshal(one, &struct{ ID, Area *string }{&v.ID, &v.Area}); err != nil {
			t.Fatal(err)
		}
		if v.Area != "health" && v.Area != "slowstart" {
			continue
		}
		if err := json.Unmarshal(one, &v); err != nil {
			t.Fatalf("%s: %v", v.ID, err)
		}
		run := vectorTests[v.ID]
		if run == nil {
			t.Errorf("no test runs vector %s", v.ID)
			continue
		}
		ran[v.Area]++
		t.Run(v.ID, func(t *testing.T) {
			n := run(t, v)
			if want := len(v.Checks) + len(v.Table); n != want {
				t.Errorf("ran %d rows of %d", n, want)
			}
			rows += n
		})
	}
	if ran["health"] != 8 || ran["slowstart"] != 3 || len(vectorTests) != 11 {
		t.Errorf("ran %v, want 8 and 3, which is all in the file", ran)
	}
	t.Logf("%d vectors, %d rows", len(vectorTests), rows)
}

func testThresholds(t *testing.T, v vector) (rows int) {
	c := Config{Rise: v.Config.Rise, Fall: v.Config.Fall, UnexpectedAtOnce: true}
	results := map[string]Result{"ok": Passed, "net": Failed, "retriable": Failed, "bad": Unexpected}
	var s State
	for i, name := range v.Checks {
		r, known := results[name]
		if !known {
			t.Fatalf("unknown result %s", name)
		}
		s = s.Next(r, c)
		if got := s.Status() == Healthy; got != v.Healthy[i] {
			t.Errorf("healthy %v after check %d, want %v", got, i, v.Healthy[i])
		}
		rows++
	}
	return rows
}

// testDetection has a host die just after a check that began and ended at instant 0.
func testDetection(t *testing.T, v vector) (rows int) {
	for _, row := range v.Table {
		rows++
		if row.Mode != "start_to_start" {
			// What others do, and the reason why we do not.
			if row.Mode != "end_to_start" || row.Millis != 12_000 {
				t.Errorf("row %+v is not known", row)
			}
			continue
		}
		k := newChecks(t, Config{Interval: 3 * time.Second, Timeout: time.Second, Fall: 3, Jitter: None})
		k.Used(0)
		k.Update([]string{"a"}, 0)
		c, _ := k.Due(0)
		k.Done(c, Passed, "", 0)
		for {
			now := k.Next()
			k.Used(now)
			c, ok := k.Due(now)
			if !ok {
				t.Fatal("nothing is due when it should be")
			}
			now += sec
			if change, changed := k.Done(c, Failed, "timeout", now); changed {
				if now/ms != row.Millis || change.To != Unhealthy {
					t.Errorf("%v at %d ms, want unhealthy at %d", change.To, now/ms, row.Millis)
				}
				break
			}
		}
	}
	return rows
}

func testJitter(t *testing.T, v vector) (rows int) {
	for _, row := range v.Table {
		got := spread(100*time.Millisecond, row.Jitter, uint64(row.U*(1<<63))<<1)
		if want := (row.Millis + row.AtMin) * ms; got != want {
			t.Errorf("u %v: %v, want %v", row.U, time.Duration(got), time.Duration(want))
		}
		rows++
	}
	if got := spread(100*time.Millisecond, 1, math.MaxUint64); got <= 199*ms || got > 200*ms {
		t.Errorf("the longest is %v, want up to 200 ms", time.Duration(got))
	}
	err := Config{Jitter: 1.5}.Validate()
	if err == nil || !strings.Contains(err.Error(), "health: Config.Jitter is 1.5, want 0 to 1 or None") {
		t.Errorf("a jitter of 1.5 gives %v", err)
	}
	return rows
}

func testFactors(t *testing.T, v vector) (rows int) {
	for _, row := range v.Table {
		got := row.Weight * SlowStartFactor(row.Elapsed*ms, row.Window*ms, row.Aggression, row.Least)
		if math.Abs(got-row.Effective) > 1e-6*row.Weight {
			t.Errorf("%+v: weight %v, want %v", row, got, row.Effective)
		}
		rows++
	}
	return rows
}

// testRampAgain follows an endpoint that is ejected, listed again, and fails a check.
func testRampAgain(t *testing.T, v vector) (rows int) {
	c := SlowStartConfig{Window: time.Duration(v.Config.Window * ms), Aggression: v.Config.Aggression, Least: v.Config.Least}
	var r Ramp
	r.Fill()
	r.Turn(false, 10*sec)
	near := func(now int64, want float64) {
		t.Helper()
		if got := r.Factor(now, c); math.Abs(got-want) > 1e-9 {
			t.Errorf("factor %v at %d ms, want %v", got, now/ms, want)
		}
	}
	r.Turn(true, 40*sec)
	for _, row := range v.Table {
		near(row.At*ms, row.Factor)
		if row.At == 45_000 {
			r.Turn(true, 45*sec) // an update that lists it
			near(45*sec, 0.5)
		}
		rows++
	}
	r.Turn(false, 46*sec)
	r.Turn(true, 48*sec)
	near(48*sec, 0.1)
	return rows
}

func testAllNew(t *testing.T, v vector) (rows int) {
	for _, row := range v.Table {
		ramps := make([]Ramp, 4)
		sum, ramping := 0.0, 0
		for i := range ramps {
			ramps[i].Turn(true, 0)
			sum += ramps[i].Factor(row.Elapsed*ms, SlowStartConfig{})
			if ramps[i].Ramping(row.Elapsed*ms, SlowStartConfig{}) {
				ramping++
			}
		}
		for i := range ramps {
			if got := ramps[i].Factor(row.Elapsed*ms, SlowStartConfig{}) / sum; got != row.Share {
				t.Errorf("share %v at %d ms, want %v", got, row.Elapsed, row.Share)
			}
		}
		if !SkipSlowStart(ramping, len(ramps)) {
			t.Errorf("%d of 4 ramp at %d ms and are not excused", ramping, row.Elapsed)
		}
		rows++
	}
	return rows
}
