package outlier_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// A breaker is Soft with one success to return, no ramp, and no limit on how many are
// out. (A single endpoint is never ejected, so there is a second.)
func breakerConfig(failures int, least, most time.Duration) outlier.Config {
	return outlier.Config{
		MaxEjectionPercent: outlier.PercentOf(100), Ramp: outlier.Ramp{Window: -1}, Panic: outlier.Panic{Threshold: outlier.PercentOf(0)},
		Soft: outlier.SoftConfig{ConsecutiveFailures: failures, ProbeBackoff: least, MaxProbeBackoff: most, ProbeSuccesses: 1},
	}
}

func testBreakerVector(t *testing.T, v vector) {
	if v.ID == "CB-04" {
		testOldAnswerVector(t, v)
		return
	}
	var in struct {
		MaxFailures int     `json:"max_failures"`
		Min         int64   `json:"min_backoff_ms"`
		Max         int64   `json:"max_backoff_ms"`
		Jitter      float64 // the source of numbers draws the middle
	}
	strictly(t, v.Config, &in)
	b := newBench(t, breakerConfig(in.MaxFailures, time.Duration(in.Min*ms), time.Duration(in.Max*ms)), "h", "other")
	h := b.host("h")
	for _, s := range stepsOf(t, v) {
		b.now = s.T * ms
		switch s.Op {
		case "result":
			token := h.Token()
			if breakerState(h.State(b.now)) == "probation" {
				var ok bool
				if token, ok = h.TryProbe(b.now); !ok {
					t.Fatalf("at %d ms there is no permit", s.T)
				}
			}
			event := outlier.Failed
			if string(s.OK) == "true" {
				event = outlier.Succeeded
			}
			b.finish(h, event, token)
		case "tick":
			b.sweep()
		default:
			t.Fatalf("unknown step %q", s.Op)
		}
		if got := breakerState(h.State(b.now)); s.State != "" && got != s.State {
			t.Errorf("%s at %d ms: %s, want %s", s.Op, s.T, got, s.State)
		}
	}
}

func breakerState(s outlier.State) string {
	switch s {
	case outlier.Ejected:
		return "shut"
	case outlier.Probing:
		return "probation"
	}
	return "open"
}

func testOldAnswerVector(t *testing.T, v vector) {
	b := newBench(t, breakerConfig(2, time.Second, 8*time.Second), "h", "other")
	h := b.host("h")
	tokens := map[string]outlier.Token{}
	for _, s := range stepsOf(t, v) {
		b.now = s.T * ms
		switch s.Op {
		case "send":
			tokens[s.ID] = h.Token()
		case "trip":
			b.observe("h", outlier.Failed, 2)
		case "probe_sent":
			token, ok := h.TryProbe(b.now)
			if !ok {
				t.Fatal("there is no permit")
			}
			tokens[s.ID] = token
		case "result":
			event := outlier.Failed
			if string(s.OK) == "true" {
				event = outlier.Succeeded
			}
			b.finish(h, event, tokens[s.ID])
		default:
			t.Fatalf("unknown step %q", s.Op)
		}
		if got := breakerState(h.State(b.now)); s.State != "" && got != s.State {
			t.Errorf("%s %s at %d ms: %s, want %s", s.Op, s.ID, s.T, got, s.State)
		}
	}
}

func testPanicVector(t *testing.T, v vector) {
	var rows []struct {
		Healthy, Degraded, Total, Excluded int
		Threshold                          float64
		Panic                              bool
	}
	strictly(t, v.Table, &rows)
	if len(rows) != 16 {
		t.Errorf("%d rows, want 16", len(rows))
	}
	for _, r := range rows {
		c := outlier.Counts{Available: r.Healthy + r.Degraded, Total: r.Total - r.Excluded}
		if got := outlier.EnvoyPanic([]outlier.Counts{c}, r.Threshold)[0]; got != r.Panic {
			t.Errorf("%+v: %v", r, got)
		}
		// The detector's own rule over the same members, where it is Envoy's.
		if r.Total > 0 {
			testPanicOfMembers(t, r.Healthy+r.Degraded, r.Total, r.Excluded, r.Threshold, r.Panic)
		}
	}
}

func testPanicOfMembers(t *testing.T, available, total, excluded int, threshold float64, want bool) {
	t.Helper()
	d, err := outlier.NewDetector(outlier.Config{Mode: outlier.Envoy, Panic: outlier.Panic{Threshold: outlier.PercentOf(threshold)}}, middle, 0)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]outlier.Member, total)
	for i := range list {
		list[i].ID = string(rune('A' + i))
		switch {
		case i >= total-excluded:
			list[i].Standing = outlier.Drained
		case i >= available:
			list[i].Standing = outlier.Failing
		}
	}
	if _, err := d.Update(list, 0); err != nil {
		t.Fatal(err)
	}
	if d.Panicking() != want {
		t.Errorf("%d of %d members without %d, threshold %v: panic is %v", available, total, excluded, threshold, d.Panicking())
	}
	may := available
	if want {
		may = total - excluded
	}
	if got := len(d.Available(nil)); got != may {
		t.Errorf("%d of %d members without %d, threshold %v: %d may be picked, want %d", available, total, excluded, threshold, got, may)
	}
}

// Only what is panic about it: how the load is spread over levels is for who picks the level.
func testPriorityPanicVector(t *testing.T, v vector) {
	var rows []struct {
		P0         int  `json:"p0_healthy"`
		P1         int  `json:"p1_healthy"`
		P0Load     int  `json:"p0_load"`
		P1Load     int  `json:"p1_load"`
		P0Panic    bool `json:"p0_panic"`
		P1Panic    bool `json:"p1_panic"`
		Normalized int
	}
	strictly(t, v.Table, &rows)
	if len(rows) != 7 {
		t.Errorf("%d rows, want 7", len(rows))
	}
	for _, r := range rows {
		levels := []outlier.Counts{{Available: r.P0, Total: 100}, {Available: r.P1, Total: 100}}
		got := outlier.EnvoyPanic(levels, 50)
		if n := outlier.NormalizedAvailability(levels); n != r.Normalized || got[0] != r.P0Panic || got[1] != r.P1Panic {
			t.Errorf("%+v: normalized %d, panic %v", r, n, got)
		}
	}
}

func testSlowStartVector(t *testing.T, v vector) {
	var rows []struct {
		Weight     float64
		Elapsed    int64 `json:"elapsed_ms"`
		Window     int64 `json:"window_ms"`
		Aggression float64
		Min        float64 `json:"min_pct"`
		Effective  float64
	}
	strictly(t, v.Table, &rows)
	if len(rows) != 15 {
		t.Errorf("%d rows, want 15", len(rows))
	}
	for _, r := range rows {
		got := r.Weight * outlier.SlowStart(time.Duration(r.Elapsed*ms), time.Duration(r.Window*ms), r.Aggression, r.Min)
		if math.Abs(got-r.Effective) > 1e-6 {
			t.Errorf("%+v: %v", r, got)
		}
	}
}

func testRampRestartVector(t *testing.T, v vector) {
	var c struct {
		Window     int64 `json:"window_ms"`
		Aggression float64
		Min        float64 `json:"min_pct"`
	}
	strictly(t, v.Config, &c)
	var rows []struct {
		T      int64 `json:"t_ms"`
		Factor float64
	}
	strictly(t, v.Table, &rows)
	b := newBench(t, outlier.Config{Ramp: outlier.Ramp{Window: time.Duration(c.Window * ms), Aggression: c.Aggression, Floor: outlier.PercentOf(100 * c.Min)}},
		"a", "b", "c", "d")
	factor := func(want float64) {
		t.Helper()
		b.sweep()
		if got := b.d.RampFactor(b.index("a"), b.now); math.Abs(got-want) > 1e-9 {
			t.Errorf("at %d ms the factor is %v, want %v", b.now/ms, got, want)
		}
	}
	b.now = 38000 * ms
	b.observe("a", outlier.Failed, 5)
	b.now = 40000 * ms
	b.observe("a", outlier.Succeeded, 3) // requests that overflowed to it
	for i, r := range rows {
		b.now = r.T * ms
		factor(r.Factor)
		if r.T == 45000 {
			b.update("d", "c", "b", "a")
			factor(r.Factor)
		}
		_ = i
	}
	// Once more, with a check that fails on the way.
	b.now += 10 * int64(time.Second)
	b.observe("a", outlier.Failed, 5)
	b.observe("a", outlier.Succeeded, 3)
	from := b.now
	b.now = from + 6000*ms
	factor(0.6)
	b.d.SetStanding(b.index("a"), outlier.Failing, b.now)
	b.now = from + 8000*ms
	b.d.SetStanding(b.index("a"), outlier.Usable, b.now)
	factor(0.1)
	b.now = from + 13000*ms
	factor(0.5)
	b.now = from + 18000*ms
	factor(1)
}

func testRampsCancelVector(t *testing.T, v vector) {
	var rows []struct {
		Elapsed int64 `json:"elapsed_ms"`
		Share   float64
	}
	strictly(t, v.Table, &rows)
	b := newBench(t, outlier.Config{}, "a", "b", "c", "d")
	for i := range 4 {
		b.d.StartRamp(i, 0)
	}
	for _, r := range rows {
		b.now = r.Elapsed * ms
		b.sweep()
		total := 0.0
		for i := range 4 {
			total += b.d.RampFactor(i, b.now)
		}
		for i := range 4 {
			if got := b.d.RampFactor(i, b.now) / total; got != r.Share {
				t.Errorf("after %d ms the share is %v, want %v", r.Elapsed, got, r.Share)
			}
		}
	}
}

func testLocalRejectionVector(t *testing.T, v vector) {
	for _, mode := range modes {
		b := newBench(t, outlier.Config{Mode: mode}, "a", "b", "c")
		for _, s := range stepsOf(t, v) {
			for _, id := range []string{"a", "b", "c"} {
				b.observe(id, outlier.EventOf(picker.Unknown), s.N)
			}
			for range 10 {
				b.now += int64(10 * time.Second)
				b.sweep()
			}
			b.check(s, false)
		}
	}
}

var modes = []outlier.Mode{outlier.Soft, outlier.Envoy, outlier.A50}

// kindOf names what an event does in Soft, as far as a detector can tell.
func kindOf(t *testing.T, e outlier.Event) string {
	t.Helper()
	b := newBench(t, outlier.Config{Panic: outlier.Panic{Threshold: outlier.PercentOf(0)}}, "a", "b")
	b.observe("a", outlier.Failed, 4)
	b.observe("a", e, 1)
	if len(b.ejected()) == 1 {
		return "failure"
	}
	b.observe("a", outlier.Failed, 1)
	if len(b.ejected()) == 1 {
		return "nothing"
	}
	return "success"
}

// The rows that name a status; what an error of the caller's process is, adapters tell.
func testClassifyVector(t *testing.T, v vector) {
	var rows []struct{ Outcome, Kind string }
	strictly(t, v.Table, &rows)
	want := map[string]string{"success": "success", "failure": "failure", "timeout": "failure", "overload": "nothing", "ignore": "nothing"}
	names := []string{"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
		"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
		"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"}
	statuses := map[string]int{"200": 200, "404": 404, "429": 429, "500": 500, "501": 501, "503": 503}
	ran := 0
	for _, r := range rows {
		protocol, rest, _ := strings.Cut(r.Outcome, " ")
		code, hint, _ := strings.Cut(rest, " + ")
		var e outlier.Event
		switch protocol {
		case "http":
			e = outlier.EventOfHTTP(statuses[code], hint != "")
		case "grpc":
			e = outlier.EventOfGRPC(uint32(slices.Index(names, code)),
				picker.GRPCFacts{BytesSent: true, BytesReceived: true, CallerLeft: code == "CANCELLED"})
		default:
			continue
		}
		ran++
		if got := kindOf(t, e); got != want[r.Kind] {
			t.Errorf("%s: %v does %s, want %s", r.Outcome, e, got, want[r.Kind])
		}
	}
	if ran != 18 || len(rows) != 28 {
		t.Errorf("%d of %d rows have a status, want 18 of 28", ran, len(rows))
	}
}
