package health

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// statusFrom is the rule written down over the whole history: the first result decides; then the
// last place at which enough results in a row spoke against the verdict.
func statusFrom(history []Result, rise, fall int, atOnce bool) Status {
	status := Unchecked
	from := 0 // since when results count towards a change
	for i, r := range history {
		if i == 0 {
			if status = Unhealthy; r == Passed {
				status = Healthy
			}
			from = 1
			continue
		}
		same := 0
		for j := i; j >= from && (history[j] == Passed) == (r == Passed); j-- {
			same++
		}
		switch {
		case status == Healthy && r != Passed && (same >= fall || atOnce && r == Unexpected):
			status, from = Unhealthy, i+1
		case status == Unhealthy && r == Passed && same >= rise:
			status, from = Healthy, i+1
		}
	}
	return status
}

func FuzzStateAgainstItsHistory(f *testing.F) {
	f.Add(uint8(2), uint8(3), false, []byte{0, 1, 1, 1, 0, 0})
	f.Add(uint8(0), uint8(0), true, []byte{1, 0, 0, 2, 0, 2, 1, 0, 0})
	f.Add(uint8(1), uint8(1), true, []byte{2, 0, 1, 0, 2})
	f.Fuzz(func(t *testing.T, rise, fall uint8, atOnce bool, results []byte) {
		c := Config{Rise: int(rise), Fall: int(fall), UnexpectedAtOnce: atOnce}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		wantRise, wantFall := int(rise), int(fall)
		if rise == 0 {
			wantRise = 2
		}
		if fall == 0 {
			wantFall = 3
		}
		var s State
		history := []Result{}
		for _, b := range results[:min(len(results), 300)] {
			history = append(history, Result(b%3))
			s = s.Next(Result(b%3), c)
			if want := statusFrom(history, wantRise, wantFall, atOnce); s.Status() != want {
				t.Fatalf("%v after %v with %+v, want %v", s.Status(), history, c, want)
			}
			if against := int(s.against); against < 0 || against >= max(wantRise, wantFall) {
				t.Fatalf("%d against the verdict after %v", against, history)
			}
		}
	})
}

func TestUnexpectedAnswersCountAtOnceOnlyIfAsked(t *testing.T) {
	for _, atOnce := range []bool{false, true} {
		s := State{}.Next(Passed, Config{}).Next(Unexpected, Config{UnexpectedAtOnce: atOnce})
		if got := s.Status() == Unhealthy; got != atOnce {
			t.Errorf("at once %v: %v after one unexpected answer", atOnce, s.Status())
		}
	}
}

// The first result decides against the endpoint, too.
func TestFirstFailureTakesOut(t *testing.T) {
	if got := (State{}).Next(Failed, Config{}).Status(); got != Unhealthy {
		t.Errorf("%v after a first failure", got)
	}
}

// With no thresholds one lost probe removes a host: the defaults have them.
func TestBug44OneLostCheckRemovesNobody(t *testing.T) {
	s := State{}.Next(Passed, Config{}).Next(Failed, Config{}).Next(Failed, Config{})
	if s.Status() != Healthy {
		t.Errorf("%v after two lost checks, want healthy", s.Status())
	}
	if s = s.Next(Failed, Config{}); s.Status() != Unhealthy {
		t.Errorf("%v after three, want unhealthy", s.Status())
	}
}

func TestConfigReportsAllProblems(t *testing.T) {
	err := Config{Interval: time.Millisecond, Timeout: -1, Jitter: math.NaN(), Rise: -1, Fall: 1001, NoTraffic: -1}.Validate()
	for _, want := range []string{
		"health: Config.Interval is 1ms, want 0 or 10ms to 1h0m0s",
		"health: Config.Timeout is -1ns, want 0 or more, at most Interval, which is 10ms",
		"health: Config.Jitter is NaN, want 0 to 1 or None",
		"health: Config.Rise is -1, want 0 to 1000",
		"health: Config.Fall is 1001, want 0 to 1000",
		"health: Config.NoTraffic is -1ns, want 0 or Interval, which is 10ms, to 1h0m0s",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	for _, c := range []Config{
		{Timeout: 6 * time.Second}, {Interval: time.Second, Timeout: 2 * time.Second},
		{NoTraffic: time.Second}, {Interval: 2 * time.Hour}, {Jitter: -0.5}, {Jitter: math.Inf(1)},
	} {
		if c.Validate() == nil {
			t.Errorf("%+v is taken", c)
		}
		if _, err := NewChecks(c, zero); err == nil {
			t.Errorf("NewChecks takes %+v", c)
		}
	}
	for _, c := range []Config{
		{}, {Interval: MinInterval}, {Interval: MaxInterval}, {Jitter: None}, {Jitter: 1},
		{Interval: 2 * time.Minute, Timeout: 2 * time.Minute, Rise: 1, Fall: MaxThreshold, NoTraffic: MaxInterval},
	} {
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	want := Config{Interval: 5 * time.Second, Timeout: time.Second, Jitter: 0.1, Rise: 2, Fall: 3, NoTraffic: time.Minute}
	if got := (Config{}).WithDefaults(); got != want {
		t.Errorf("defaults are %+v, want %+v", got, want)
	}
	if got := (Config{Interval: time.Second / 2}).WithDefaults().Timeout; got != time.Second/2 {
		t.Errorf("timeout %v at an interval of 0.5 s", got)
	}
	if got := (Config{Interval: 2 * time.Minute}).WithDefaults().NoTraffic; got != 2*time.Minute {
		t.Errorf("%v without traffic at an interval of two minutes", got)
	}
}

// A jitter that may give a wait of nothing or less has panicked processes elsewhere.
func TestBug42JitterNeverGivesAWaitOfNothing(t *testing.T) {
	if err := (Config{Jitter: 3}).Validate(); err == nil {
		t.Error("a jitter of 3 is taken")
	}
	for _, random := range []uint64{0, 1, 1 << 63, math.MaxUint64} {
		if got := spread(MinInterval, 1, random); got < leastSpacing || got > 2*int64(MinInterval) {
			t.Errorf("a wait of %v", time.Duration(got))
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add(int64(0), int64(0), 0.0, 0, 0, int64(0), uint64(0))
	f.Add(int64(time.Hour), int64(time.Hour), 1.0, 1000, 1000, int64(time.Hour), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, interval, timeout int64, jitter float64, rise, fall int, noTraffic int64, random uint64) {
		c := Config{Interval: time.Duration(interval), Timeout: time.Duration(timeout), Jitter: jitter, Rise: rise, Fall: fall, NoTraffic: time.Duration(noTraffic)}
		err := c.Validate()
		if err != nil {
			joined, ok := errors.AsType[interface {
				error
				Unwrap() []error
			}](err)
			if !ok {
				t.Fatalf("%T is not a list of problems", err)
			}
			for _, one := range joined.Unwrap() {
				if text := one.Error(); !strings.HasPrefix(text, "health: Config.") || !strings.Contains(text, ", want ") {
					t.Fatalf("text %q", text)
				}
			}
			return
		}
		d := c.WithDefaults()
		if d != d.WithDefaults() && d.Jitter != 0 {
			t.Fatalf("defaults of defaults of %+v differ", c)
		}
		if d.Timeout <= 0 || d.Timeout > d.Interval || d.NoTraffic < d.Interval || d.Rise < 1 || d.Fall < 1 || d.Jitter < 0 {
			t.Fatalf("%+v becomes %+v", c, d)
		}
		if wait := spread(d.NoTraffic, d.Jitter, random); wait < leastSpacing || wait > 2*int64(MaxInterval) {
			t.Fatalf("a wait of %d", wait)
		}
	})
}

func zero() uint64 { return 0 }

func TestStatusesHaveNames(t *testing.T) {
	for want, got := range map[string]string{
		"unchecked": Unchecked.String(), "healthy": Healthy.String(), "unhealthy": Unhealthy.String(), "invalid": Status(9).String(),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
