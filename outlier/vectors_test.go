package outlier_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/outlier"
)

// vector is one case of the file; which fields it has depends on its area.
type vector struct {
	ID        string
	Area      string
	Title     string
	Hosts     []string
	Config    json.RawMessage
	Steps     json.RawMessage
	Table     json.RawMessage
	OrderNote string `json:"order_note"`
}

func readVectors(t *testing.T) []vector {
	t.Helper()
	raw, err := os.ReadFile("testdata/reliability.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []vector }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	return file.Vectors
}

func into(t *testing.T, raw json.RawMessage, to any) {
	t.Helper()
	if err := json.Unmarshal(raw, to); err != nil {
		t.Fatal(err)
	}
}

// elsewhere says of areas and of single vectors what they describe instead of ejection.
var elsewhere = map[string]string{
	"health":         "the state machine of active checks",
	"retry.budget":   "budgets of retries",
	"retry.throttle": "gRPC's retry tokens",
	"throttle":       "client-side throttling",
	"hedge":          "copies of slow requests",
	"weights":        "weights from load reports",
	"simulation":     "a fleet in virtual time, with a limit in flight",
	"PN-03":          "a fleet in virtual time",
	"CC-01":          "a limit of requests in flight",
	"CC-02":          "counts of requests in flight",
}

// Every vector of the file is run here or named as somebody else's.
func TestVectors(t *testing.T) {
	run := map[string]func(*testing.T, vector){
		"outlier.envoy":   testEnvoyVector,
		"outlier.a50":     testA50Vector,
		"outlier.breaker": testBreakerVector,
		"PN-01":           testPanicVector,
		"PN-02":           testPriorityPanicVector,
		"SS-01":           testSlowStartVector,
		"SS-02":           testRampRestartVector,
		"SS-03":           testRampsCancelVector,
		"CC-03":           testLocalRejectionVector,
		"classify":        testClassifyVector,
	}
	want := map[string]int{"outlier.envoy": 16, "outlier.a50": 10, "outlier.breaker": 2, "panic": 2, "slowstart": 3,
		"concurrency": 1, "classify": 1}
	ran, left := map[string]int{}, map[string]int{}
	vectors := readVectors(t)
	for _, v := range vectors {
		test, mine := run[v.ID]
		if !mine {
			test, mine = run[v.Area]
		}
		why, theirs := elsewhere[v.ID]
		if !theirs {
			why, theirs = elsewhere[v.Area]
		}
		switch {
		case mine == theirs:
			t.Errorf("%s (%s) is run here: %v, left to others: %v; want one of them", v.ID, v.Area, mine, theirs)
		case mine:
			ran[v.Area]++
			t.Run(v.ID, func(t *testing.T) { test(t, v) })
		default:
			left[v.Area]++
			t.Logf("left to others: %s, %s: %s", v.ID, v.Area, why)
		}
	}
	if fmt.Sprint(ran) != fmt.Sprint(want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
	if total := len(vectors); total != 57 || sum(ran)+sum(left) != total {
		t.Errorf("the file has %d vectors, %d run here and %d left: want 57 in all", total, sum(ran), sum(left))
	}
	t.Logf("ran %d: %v; left %d: %v", sum(ran), ran, sum(left), left)
}

func sum(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

const ms = int64(time.Millisecond)

// bench drives a Detector by IDs.
type bench struct {
	t   *testing.T
	d   *outlier.Detector
	now int64
}

func newBench(t *testing.T, c outlier.Config, ids ...string) *bench {
	t.Helper()
	d, err := outlier.NewDetector(c, middle, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, d: d}
	b.update(ids...)
	return b
}

// middle is a source whose uniform numbers are all one half, so that jitter is 0.
func middle() uint64 { return 1 << 63 }

func (b *bench) update(ids ...string) {
	b.t.Helper()
	list := make([]outlier.Member, len(ids))
	for i, id := range ids {
		list[i].ID = id
	}
	if _, err := b.d.Update(list, b.now); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) index(id string) int {
	b.t.Helper()
	i, ok := b.d.Index(id)
	if !ok {
		b.t.Fatalf("%s is not in the list", id)
	}
	return i
}

func (b *bench) host(id string) *outlier.Host { b.t.Helper(); return b.d.Host(b.index(id)) }

// observe books n requests that end as they begin.
func (b *bench) observe(id string, e outlier.Event, n int) {
	b.t.Helper()
	for range n {
		h := b.host(id)
		b.finish(h, e, h.Token())
	}
}

func (b *bench) finish(h *outlier.Host, e outlier.Event, t outlier.Token) {
	if h.Observe(e, t, b.now) {
		b.d.Act(h, b.now)
	}
}

func (b *bench) sweep() { b.d.Sweep(b.now) }

// ejected returns who is out, in alphabetical order.
func (b *bench) ejected() []string {
	out := []string{}
	for i := range b.d.Len() {
		if s := b.d.Stats(i, b.now); s.State == outlier.Ejected || s.State == outlier.Probing {
			out = append(out, s.ID)
		}
	}
	slices.Sort(out)
	return out
}

func (b *bench) wantEjected(what string, want ...string) {
	b.t.Helper()
	if got := b.ejected(); fmt.Sprint(got) != fmt.Sprint(want) {
		b.t.Errorf("%s: %v are ejected, want %v", what, got, want)
	}
}

// step is one of an outlier vector.
type step struct {
	T              int64 `json:"t_ms"`
	Op             string
	Host           string
	Outcome        json.RawMessage
	N              int
	OK             json.RawMessage
	Fail           int
	FailedActiveHC bool `json:"failed_active_hc"`
	Hosts          []string
	Config         json.RawMessage
	Ejected        *[]string
	Multiplier     map[string]int
	Threshold      *float64
	State          string
	ID             string
}

func (b *bench) check(s step, countOnly bool) {
	b.t.Helper()
	what := fmt.Sprintf("%s at %d ms", s.Op, s.T)
	if s.Ejected != nil {
		got, want := b.ejected(), slices.Clone(*s.Ejected)
		slices.Sort(want)
		if countOnly && len(got) != len(want) || !countOnly && !slices.Equal(got, want) {
			b.t.Errorf("%s: %v are ejected, want %v", what, got, want)
		}
	}
	for id, want := range s.Multiplier {
		if got := b.d.Stats(b.index(id), b.now).Multiplier; got != want {
			b.t.Errorf("%s: the multiplier of %s is %d, want %d", what, id, got, want)
		}
	}
	if s.Threshold != nil {
		if got, ok := b.d.SuccessRateThreshold(); !ok || math.Abs(got-*s.Threshold) > 1e-9 {
			b.t.Errorf("%s: the threshold is %v (%v), want %v", what, got, ok, *s.Threshold)
		}
	}
}

func testEnvoyVector(t *testing.T, v vector) {
	var in struct {
		Consecutive5xx     int      `json:"consecutive_5xx"`
		Enforcing5xx       *float64 `json:"enforcing_5xx"`
		EnforcingGateway   *float64 `json:"enforcing_gateway"`
		EnforcingFP        *float64 `json:"enforcing_fp"`
		MaxEjectionPercent *float64 `json:"max_ejection_percent"`
		AlwaysEjectOne     bool     `json:"always_eject_one"`
		Split              bool
		BaseMS             int64 `json:"base_ms"`
		IntervalMS         int64 `json:"interval_ms"`
	}
	strictly(t, v.Config, &in)
	c := outlier.Config{
		Mode: outlier.Envoy, Interval: time.Duration(in.IntervalMS * ms), BaseEjectionTime: time.Duration(in.BaseMS * ms),
		MaxEjectionPercent: percent(in.MaxEjectionPercent), AtLeastOne: in.AlwaysEjectOne,
	}
	c.Envoy.Consecutive5xx = min(in.Consecutive5xx, 1<<29-1) // 10^9 says "never"
	c.Envoy.EnforceConsecutive5xx = percent(in.Enforcing5xx)
	c.Envoy.EnforceConsecutiveGateway = percent(in.EnforcingGateway)
	c.Envoy.FailurePercentage.Enforce = percent(in.EnforcingFP)
	c.Envoy.SplitLocalOrigin = in.Split
	b := newBench(t, c, v.Hosts...)
	for _, s := range stepsOf(t, v) {
		b.now = s.T * ms
		switch s.Op {
		case "result":
			b.observe(s.Host, envoyEvent(t, s.Outcome), s.N)
		case "sweep":
			b.sweep()
		case "hc":
			standing := outlier.Usable
			if s.FailedActiveHC {
				standing = outlier.Failing
			}
			b.d.SetStanding(b.index(s.Host), standing, b.now)
			b.d.CheckPassed(b.index(s.Host), b.now)
		case "set_hosts":
			b.update(s.Hosts...)
		default:
			t.Fatalf("unknown step %q", s.Op)
		}
		b.check(s, v.OrderNote != "")
	}
}

func envoyEvent(t *testing.T, raw json.RawMessage) outlier.Event {
	t.Helper()
	var status int
	if json.Unmarshal(raw, &status) == nil {
		return outlier.EventOfHTTP(status, false)
	}
	switch strings.Trim(string(raw), `"`) {
	case "local_connect_failed":
		return outlier.Unreached
	case "local_connect_ok":
		return outlier.Connected
	}
	t.Fatalf("unknown outcome %s", raw)
	return 0
}

func testA50Vector(t *testing.T, v vector) {
	b := newBench(t, a50Config(t, v.Config), v.Hosts...)
	for _, s := range stepsOf(t, v) {
		b.now = s.T * ms
		switch s.Op {
		case "result":
			var ok int
			into(t, s.OK, &ok)
			b.observe(s.Host, outlier.Succeeded, ok)
			b.observe(s.Host, outlier.Failed, s.Fail)
		case "sweep":
			b.sweep()
		case "set_hosts":
			b.update(s.Hosts...)
		case "config", "config_noop":
			c := outlier.Config{Mode: outlier.A50}
			if s.Op == "config" {
				c = a50Config(t, s.Config)
			}
			if _, err := b.d.SetConfig(c, b.now); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("unknown step %q", s.Op)
		}
		b.check(s, v.OrderNote != "")
	}
}

func a50Config(t *testing.T, raw json.RawMessage) outlier.Config {
	t.Helper()
	var in struct {
		SR *struct {
			Stdev, Enforce float64
			MinHosts       int `json:"min_hosts"`
			Volume         int
		}
		FP *struct {
			Threshold, Enforce float64
			MinHosts           int `json:"min_hosts"`
			Volume             int
		}
		MaxEjectionPercent *float64 `json:"max_ejection_percent"`
	}
	strictly(t, raw, &in)
	c := outlier.Config{Mode: outlier.A50, MaxEjectionPercent: percent(in.MaxEjectionPercent)}
	if sr := in.SR; sr != nil {
		c.A50.SuccessRate = &outlier.SuccessRate{StdevFactor: sr.Stdev / 1000, Enforce: outlier.PercentOf(sr.Enforce),
			MinHosts: sr.MinHosts, RequestVolume: sr.Volume}
	}
	if fp := in.FP; fp != nil {
		c.A50.FailurePercentage = &outlier.FailurePercentage{Threshold: outlier.PercentOf(fp.Threshold),
			Enforce: outlier.PercentOf(fp.Enforce), MinHosts: fp.MinHosts, RequestVolume: fp.Volume}
	}
	return c
}

func percent(v *float64) outlier.Percent {
	if v == nil {
		return outlier.Percent{}
	}
	return outlier.PercentOf(*v)
}

func stepsOf(t *testing.T, v vector) []step {
	t.Helper()
	var steps []step
	strictly(t, v.Steps, &steps)
	if len(steps) == 0 {
		t.Fatal("no steps")
	}
	return steps
}

// strictly refuses what it does not know, so that no part of a vector is passed over.
func strictly(t *testing.T, raw json.RawMessage, to any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		t.Fatal(err)
	}
}
