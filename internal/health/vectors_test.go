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
		Rise int `json:"healthy_threshold"`
		Fall int `json:"unhealthy_threshold"`
	}
	Checks  []string
	Healthy []bool `json:"healthy_after"`
	Table   []vectorRow
}

type vectorRow struct {
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
}

// All vectors of health checks are run here, each row of each.
func TestVectorsOfHealth(t *testing.T) {
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
		if v.Area != "health" {
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
	if ran["health"] != 8 || len(vectorTests) != 8 {
		t.Errorf("ran %v, want 8, which is all in the file", ran)
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
