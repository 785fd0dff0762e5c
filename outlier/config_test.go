package outlier_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/outlier"
)

func problemsOf(err error) []string {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []string{err.Error()}
	}
	var list []string
	for _, e := range joined.Unwrap() {
		list = append(list, e.Error())
	}
	return list
}

// Every wrong field is named, all of them at once.
func TestAllProblemsOfAConfigComeAtOnce(t *testing.T) {
	bad := outlier.Config{
		Mode: 7, Interval: -1, MaxEjectionPercent: outlier.PercentOf(101), BaseEjectionTime: -1,
		MaxEjectionTime: -1, MaxEjectionJitter: -1,
		Soft: outlier.SoftConfig{ConsecutiveFailures: -2, RequestVolume: -1, MinHosts: -1, MaxWindow: -1, ProbeBackoff: time.Second,
			MaxProbeBackoff: time.Millisecond, ProbeJitter: 1.5, ProbeTimeout: -1, ProbeSuccesses: -1, Remember: -1},
		Envoy: outlier.EnvoyConfig{Consecutive5xx: -5, ConsecutiveGateway: math.MaxInt32, ConsecutiveLocal: -3,
			EnforceConsecutive5xx: outlier.PercentOf(-1), EnforceConsecutiveGateway: outlier.PercentOf(math.NaN()),
			EnforceConsecutiveLocal: outlier.PercentOf(math.Inf(1)), EnforceLocalSuccessRate: outlier.PercentOf(200),
			EnforceLocalFailurePercentage: outlier.PercentOf(100.1),
			SuccessRate:                   outlier.SuccessRate{StdevFactor: math.NaN(), Enforce: outlier.PercentOf(101), MinHosts: -1, RequestVolume: -1},
			FailurePercentage:             outlier.FailurePercentage{Threshold: outlier.PercentOf(-1), Enforce: outlier.PercentOf(101), MinHosts: -1, RequestVolume: -1}},
		A50:   outlier.A50Config{SuccessRate: &outlier.SuccessRate{StdevFactor: -1}, FailurePercentage: &outlier.FailurePercentage{Threshold: outlier.PercentOf(math.NaN())}},
		Ramp:  outlier.Ramp{Aggression: math.NaN(), Floor: outlier.PercentOf(101)},
		Panic: outlier.Panic{Threshold: outlier.PercentOf(60), Leave: outlier.PercentOf(50)},
	}
	got := problemsOf(bad.Validate())
	if len(got) != 36 {
		t.Errorf("%d problems, want 36:\n%s", len(got), strings.Join(got, "\n"))
	}
	for _, p := range got {
		if !strings.HasPrefix(p, "outlier: ") || !strings.Contains(p, " is ") || !strings.Contains(p, "want ") {
			t.Errorf("%q does not name package, value and bound", p)
		}
	}
	if _, err := outlier.NewDetector(bad, nil, 0); len(problemsOf(err)) != len(got) {
		t.Errorf("NewDetector says %v", err)
	}
}

// Each number of a Config refuses each value that is out of its range, and says which it is.
func TestEveryFieldIsChecked(t *testing.T) {
	var walk func(v reflect.Value, name string, check func(name string))
	c := outlier.Config{A50: outlier.A50Config{SuccessRate: &outlier.SuccessRate{}, FailurePercentage: &outlier.FailurePercentage{}}}
	fields := 0
	walk = func(v reflect.Value, name string, check func(string)) {
		for i := range v.NumField() {
			f, field := v.Field(i), v.Type().Field(i).Name
			switch {
			case f.Kind() == reflect.Pointer:
				walk(f.Elem(), field, check)
			case f.Type() == reflect.TypeFor[outlier.Percent]():
				for _, bad := range []float64{-1, 100.5, math.NaN(), math.Inf(1)} {
					f.Set(reflect.ValueOf(outlier.PercentOf(bad)))
					check(field)
					fields++
				}
				f.SetZero()
			case f.Kind() == reflect.Struct:
				walk(f, field, check)
			case f.Kind() == reflect.Float64:
				for _, bad := range []float64{-1, math.NaN(), math.Inf(1)} {
					f.SetFloat(bad)
					check(field)
					fields++
				}
				f.SetZero()
			case f.Type() == reflect.TypeFor[time.Duration]():
				if field == "Window" { // below 0 is "none"
					continue
				}
				f.SetInt(-1)
				check(field)
				fields++
				f.SetZero()
			case f.Kind() == reflect.Int:
				for _, bad := range []int64{-2, 1<<29 + 1} {
					f.SetInt(bad)
					check(field)
					fields++
				}
				f.SetZero()
			}
		}
	}
	walk(reflect.ValueOf(&c).Elem(), "Config", func(field string) {
		t.Helper()
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "."+field+" is ") {
			t.Errorf("%s: %v", field, err)
		}
	})
	if fields < 80 {
		t.Errorf("only %d values tried", fields)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("the zero Config: %v", err)
	}
}

func TestMaximaAreNotBelowWhatTheyBound(t *testing.T) {
	for _, tc := range []struct {
		c  outlier.Config
		ok bool
	}{
		{outlier.Config{BaseEjectionTime: time.Second, MaxEjectionTime: time.Second}, true},
		{outlier.Config{BaseEjectionTime: 2 * time.Second, MaxEjectionTime: time.Second}, false},
		{outlier.Config{MaxEjectionTime: 29 * time.Second}, false}, // the default base is 30 s
		{outlier.Config{BaseEjectionTime: time.Hour}, true},        // the default maximum follows
		{outlier.Config{Soft: outlier.SoftConfig{MaxProbeBackoff: 400 * time.Millisecond}}, false},
		{outlier.Config{Soft: outlier.SoftConfig{ProbeBackoff: time.Minute}}, true},
		{outlier.Config{Panic: outlier.Panic{Leave: outlier.PercentOf(49)}}, false},
		{outlier.Config{Panic: outlier.Panic{Threshold: outlier.PercentOf(95)}}, true},
	} {
		if err := tc.c.Validate(); (err == nil) != tc.ok {
			t.Errorf("%+v: %v", tc.c, err)
		}
	}
}

// A refused configuration changes nothing, an equal one neither, and a good one keeps who is out.
func TestConfigChangesKeepState(t *testing.T) {
	c := outlier.Config{}
	b := newBench(t, c, "a", "b", "c")
	b.observe("a", outlier.Failed, 5)
	b.observe("b", outlier.Failed, 4)
	version := b.d.Version()
	if _, err := b.d.SetConfig(outlier.Config{Interval: -1}, b.now); err == nil || b.d.Config() != c {
		t.Errorf("%v, and the configuration is %+v", err, b.d.Config())
	}
	if _, err := b.d.SetConfig(c, b.now); err != nil || b.d.Version() != version {
		t.Error("an equal configuration changes something")
	}
	c.Soft.ProbeTimeout = time.Minute
	c.MaxEjectionPercent = all
	if changes, err := b.d.SetConfig(c, b.now); err != nil || len(changes) != 0 {
		t.Errorf("%v, %v", changes, err)
	}
	b.wantEjected("who is out", "a")
	b.observe("b", outlier.Failed, 1)
	b.wantEjected("the run went on", "a", "b")
}

// A50's rules are behind pointers, and equal if what they point to is. Others keep what the interval has counted.
func TestA50ConfigChangesKeepTheInterval(t *testing.T) {
	config := func(threshold float64) outlier.Config {
		return outlier.Config{Mode: outlier.A50, A50: outlier.A50Config{FailurePercentage: &outlier.FailurePercentage{
			Threshold: outlier.PercentOf(threshold), MinHosts: 3, RequestVolume: 10}}}
	}
	b := newBench(t, config(90), "a", "b", "c")
	version := b.d.Version()
	for _, id := range []string{"a", "b", "c"} {
		b.observe(id, outlier.Succeeded, 10)
	}
	b.observe("a", outlier.Failed, 40)
	if _, err := b.d.SetConfig(config(90), b.now); err != nil || b.d.Version() != version {
		t.Errorf("the same rules change something: %v", err)
	}
	b.at(5 * time.Second)
	if _, err := b.d.SetConfig(config(70), b.now); err != nil {
		t.Fatal(err)
	}
	b.at(10 * time.Second)
	b.sweep()
	b.wantEjected("80 % of a whole interval", "a")
}

// From one mode to another who is out stays out, and comes back by the new mode's rules.
func TestModesMayChange(t *testing.T) {
	c := outlier.Config{MaxEjectionPercent: all}
	b := newBench(t, c, idsUpTo(6)...)
	b.observe("h1", outlier.Failed, 5)
	b.observe("h2", outlier.Failed, 5)
	b.observe("h2", outlier.Succeeded, 3) // ramping
	set := func(m outlier.Mode) {
		t.Helper()
		c.Mode = m
		c.A50.SuccessRate = &outlier.SuccessRate{}
		if _, err := b.d.SetConfig(c, b.now); err != nil {
			t.Fatal(err)
		}
	}
	set(outlier.Envoy)
	b.wantEjected("in Envoy", "h1")
	b.wantState("h2", outlier.Available)
	b.observe("h1", outlier.Succeeded, 10)
	b.at(20 * time.Second)
	b.sweep()
	b.wantEjected("20 s later", "h1")
	b.at(30 * time.Second)
	b.sweep()
	b.wantEjected("30 s later")
	b.observe("h3", outlier.Failed, 5)
	set(outlier.Soft)
	b.wantState("h3", outlier.Probing)
	for range 3 {
		b.finish(b.host("h3"), outlier.Succeeded, b.take("h3"))
	}
	b.wantState("h3", outlier.Ramping)
	b.observe("h4", outlier.Failed, 5)
	set(outlier.A50)
	b.wantEjected("in A50", "h4")
	b.now += int64(30 * time.Second)
	b.sweep()
	b.wantEjected("in A50, 30 s later")
}

// What nobody has acted on yet belongs to the old rules.
func TestOldNotesEndWithTheirMode(t *testing.T) {
	b := newBench(t, outlier.Config{}, "a", "b")
	h := b.host("a")
	for range 5 {
		h.Observe(outlier.Failed, h.Token(), 0)
	}
	if _, err := b.d.SetConfig(capped(outlier.Envoy, 100), 0); err != nil {
		t.Fatal(err)
	}
	b.sweep()
	b.wantEjected("by a run of another mode")
}

func TestListsAreRefusedAsAWhole(t *testing.T) {
	b := newBench(t, outlier.Config{}, "a", "b")
	_, err := b.d.Update([]outlier.Member{{ID: "a"}, {ID: ""}, {ID: "a"}, {ID: "x", Standing: 9}}, 0)
	if err == nil || strings.Count(err.Error(), "want") != 3 || b.d.Len() != 2 {
		t.Errorf("%v, and %d members", err, b.d.Len())
	}
}

// Indices that are none, and hosts of somebody else, do nothing.
func TestWhatIsNotThereDoesNothing(t *testing.T) {
	b := newBench(t, outlier.Config{}, "a", "b")
	other := newBench(t, outlier.Config{}, "a", "b")
	for _, i := range []int{-1, 2, math.MaxInt} {
		if b.d.Host(i) != nil || b.d.Stats(i, 0) != (outlier.HostStats{}) || b.d.RampFactor(i, 0) != 1 ||
			len(b.d.SetStanding(i, outlier.Failing, 0))+len(b.d.StartRamp(i, 0))+len(b.d.CheckPassed(i, 0)) != 0 {
			t.Errorf("index %d", i)
		}
	}
	h := other.host("a")
	for range 5 {
		h.Observe(outlier.Failed, h.Token(), 0)
	}
	if len(b.d.Act(h, 0))+len(b.d.Act(nil, 0)) != 0 {
		t.Error("a host of another detector changes something")
	}
}

func TestNamesOfAllValues(t *testing.T) {
	for _, list := range [][]string{
		{outlier.Soft.String(), outlier.Envoy.String(), outlier.A50.String(), outlier.NoEjection.String(), outlier.Mode(4).String()},
		{outlier.Available.String(), outlier.Ejected.String(), outlier.Probing.String(), outlier.Ramping.String(), outlier.State(4).String()},
		{outlier.Usable.String(), outlier.Failing.String(), outlier.Unready.String(), outlier.Drained.String(), outlier.Standing(4).String()},
		{outlier.PercentOf(12.5).String(), outlier.Percent{}.String(), "invalid"},
	} {
		seen := map[string]bool{}
		for _, name := range list {
			if name == "" || seen[name] {
				t.Errorf("%q of %v is empty or twice", name, list)
			}
			seen[name] = true
		}
		if !seen["invalid"] {
			t.Errorf("%v has no name for what is invalid", list)
		}
	}
	for e := range outlier.Event(13) {
		if (e.String() == "invalid") != (e > outlier.Unclear) {
			t.Errorf("event %d is %v", e, e)
		}
	}
	for r := range outlier.Reason(20) {
		if (r.String() == "invalid") != (r > outlier.RampOver) {
			t.Errorf("reason %d is %v", r, r)
		}
	}
}
