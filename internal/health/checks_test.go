package health

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func newChecks(tb testing.TB, c Config) *Checks {
	tb.Helper()
	k, err := NewChecks(c, zero)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// pass makes all checks that are due at now, with the result r.
func makeDue(k *Checks, now int64, r Result) (n int) {
	for c, ok := k.Due(now); ok; c, ok = k.Due(now) {
		k.Done(c, r, r.text(), now)
		n++
	}
	return n
}

func (r Result) text() string { return [...]string{"ok", "no answer", "status 500"}[r] }

func status(tb testing.TB, k *Checks, id string) Status {
	tb.Helper()
	s, _, ok := k.State(id)
	if !ok {
		tb.Fatalf("%s is no member", id)
	}
	return s.Status()
}

// unchecked counts the endpoints that have had no result.
func unchecked(k *Checks) (n int) {
	for _, e := range k.endpoints {
		if e.state.Status() == Unchecked {
			n++
		}
	}
	return n
}

func TestFirstChecksAreDueAtOnceAndDecide(t *testing.T) {
	k := newChecks(t, Config{})
	k.Update([]string{"a", "b", "a"}, 7*sec)
	if len(k.endpoints) != 2 || k.Next() != 7*sec || unchecked(k) != 2 {
		t.Fatalf("%d endpoints, next at %d, %d unchecked", len(k.endpoints), k.Next(), unchecked(k))
	}
	for _, want := range []struct {
		id     string
		result Result
		to     Status
	}{{"a", Passed, Healthy}, {"b", Unexpected, Unhealthy}} {
		c, ok := k.Due(7 * sec)
		if !ok || c.ID != want.id || !c.First || c.Started != 7*sec {
			t.Fatalf("check %+v, %v", c, ok)
		}
		change, changed := k.Done(c, want.result, want.result.text(), 7*sec+ms)
		if !changed || change != (Change{want.id, Unchecked, want.to, want.result.text()}) {
			t.Errorf("change %+v, %v", change, changed)
		}
		if s, detail, ok := k.State(want.id); s.Status() != want.to || detail != want.result.text() || !ok {
			t.Errorf("%s is %v (%s), %v", want.id, s.Status(), detail, ok)
		}
	}
	if n := unchecked(k); n != 0 {
		t.Errorf("%d unchecked", n)
	}
	if c, ok := k.Due(7*sec + ms); ok {
		t.Errorf("%s is due again at once", c.ID)
	}
}

// A check that takes long does not put off the next, and never is one endpoint checked twice
// at a time.
func TestIntervalsAreFromStartToStart(t *testing.T) {
	k := newChecks(t, Config{Interval: 3 * time.Second, Timeout: 3 * time.Second, Jitter: None})
	k.Update([]string{"a"}, 0)
	for i := range int64(5) {
		k.Used(3 * sec * i)
		c, ok := k.Due(3 * sec * i)
		if !ok {
			t.Fatalf("nothing is due at %d s", 3*i)
		}
		if again, ok := k.Due(3*sec*i + 10*sec); ok {
			t.Fatalf("%s is due while it is being checked", again.ID)
		}
		k.Done(c, Passed, "", 3*sec*i+2900*ms)
	}
	c, _ := k.Due(15 * sec)
	k.Used(25 * sec)
	k.Done(c, Passed, "", 25*sec) // a prober that was away
	if k.Next() != 25*sec {
		t.Errorf("next at %d, want at once, not in the past", k.Next())
	}
}

func TestJitterSpreadsTheIntervals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	k, err := NewChecks(Config{Jitter: 0.5}, r.Uint64)
	if err != nil {
		t.Fatal(err)
	}
	k.Update([]string{"a"}, 0)
	least, most, now := int64(math.MaxInt64), int64(0), int64(0)
	for range 1000 {
		k.Used(now)
		makeDue(k, now, Passed)
		least, most = min(least, k.Next()-now), max(most, k.Next()-now)
		now = k.Next()
	}
	if least < 2500*ms || least > 2600*ms || most > 7500*ms || most < 7400*ms {
		t.Errorf("intervals from %v to %v, want 2.5 s to 7.5 s", time.Duration(least), time.Duration(most))
	}
}

func TestStateIsKeptOverUpdatesAndForgottenWithTheMember(t *testing.T) {
	k := newChecks(t, Config{})
	k.Update([]string{"a", "b"}, 0)
	makeDue(k, 0, Passed)
	at, _ := k.timers.At("a")
	k.Update([]string{"b", "c", "a"}, 2*sec)
	if status(t, k, "a") != Healthy || status(t, k, "c") != Unchecked || unchecked(k) != 1 {
		t.Error("an update changed what was known")
	}
	if now, ok := k.timers.At("a"); !ok || now != at {
		t.Errorf("the next check of a moved from %d to %d", at, now)
	}
	k.Update([]string{"a"}, 3*sec)
	if _, _, ok := k.State("b"); ok || k.timers.Len() != 1 || unchecked(k) != 0 {
		t.Errorf("b is still known, %d timers, %d unchecked", k.timers.Len(), unchecked(k))
	}
	k.Update([]string{"a", "b"}, 4*sec)
	if status(t, k, "b") != Unchecked || k.Next() != 4*sec {
		t.Error("b came back with its old state")
	}
	k.Update(nil, 5*sec)
	if len(k.endpoints) != 0 || k.Next() != math.MaxInt64 {
		t.Errorf("%d endpoints in an empty pool, next at %d", len(k.endpoints), k.Next())
	}
}

// Results of an endpoint that has left, or left and returned, belong to nobody.
func TestLateResultsChangeNothing(t *testing.T) {
	k := newChecks(t, Config{})
	k.Update([]string{"a"}, 0)
	old, _ := k.Due(0)
	k.Update(nil, 1)
	if _, changed := k.Done(old, Passed, "", 2); changed || k.Next() != math.MaxInt64 {
		t.Error("a result came in for an endpoint that has left, and checks went on")
	}
	k.Update([]string{"a"}, 3)
	fresh, _ := k.Due(3)
	if _, changed := k.Done(old, Passed, "", 4); changed {
		t.Error("the result from before it left was taken")
	}
	if _, changed := k.Done(fresh, Failed, "", 5); !changed {
		t.Error("its own result was not")
	}
	if _, changed := k.Done(fresh, Passed, "", 6); changed {
		t.Error("one check gave two results")
	}
	if _, changed := k.Done(Check{ID: "nobody"}, Passed, "", 7); changed {
		t.Error("a result came in for nobody")
	}
}

// A pool that nobody uses is checked once a minute, and in time again when it is used.
func TestChecksAreRarerWithoutTraffic(t *testing.T) {
	k := newChecks(t, Config{Jitter: None})
	k.Update([]string{"a", "b"}, 0)
	checks := 0
	now := int64(0)
	for ; now < 600*sec; now = k.Next() {
		checks += makeDue(k, now, Passed)
	}
	if checks != 20 {
		t.Errorf("%d checks in ten minutes without traffic, want 20", checks)
	}
	now -= 50 * sec // ten seconds after the last checks
	k.Used(now)
	if k.Next() != now {
		t.Errorf("next in %d ms after a pause, want at once", (k.Next()-now)/ms)
	}
	checks = 0
	for end := now + 60*sec; now < end; now = k.Next() {
		k.Used(now)
		checks += makeDue(k, now, Passed)
	}
	if checks != 24 {
		t.Errorf("%d checks in a minute with traffic, want 24", checks)
	}
}

func TestNewConfigKeepsStatesAndMovesChecks(t *testing.T) {
	k := newChecks(t, Config{Jitter: None, Interval: time.Minute})
	k.Used(0)
	k.Update([]string{"a"}, 0)
	makeDue(k, 0, Passed)
	if err := k.SetConfig(Config{Jitter: 7}, sec); err == nil || k.Next() != 60*sec {
		t.Errorf("a bad config gives %v, next at %d", err, k.Next())
	}
	k.Used(10 * sec)
	k.Update([]string{"a", "b"}, 10*sec)
	if err := k.SetConfig(Config{Jitter: None, Interval: 20 * time.Second, Fall: 1}, 12*sec); err != nil {
		t.Fatal(err)
	}
	if at, _ := k.timers.At("a"); at != 20*sec || status(t, k, "a") != Healthy {
		t.Errorf("next check of a at %d, %v; want 20 s after the last, healthy", at, status(t, k, "a"))
	}
	if at, _ := k.timers.At("b"); at != 10*sec {
		t.Errorf("first check of b at %d, want at once as before", at)
	}
	makeDue(k, 20*sec, Failed)
	if status(t, k, "a") != Unhealthy {
		t.Error("the new threshold does not count")
	}
	at := k.Next()
	if err := k.SetConfig(Config{Jitter: None, Interval: 20 * time.Second, Fall: 1, Rise: 2}, 30*sec); err != nil || k.Next() != at {
		t.Errorf("the same config gives %v and moves a check from %d to %d", err, at, k.Next())
	}
}

// An equal configuration changes nothing, not even by chance.
func TestSameConfigDrawsNothing(t *testing.T) {
	draws := 0
	k, err := NewChecks(Config{}, func() uint64 { draws++; return uint64(draws) << 60 })
	if err != nil {
		t.Fatal(err)
	}
	k.Update([]string{"a", "b"}, 0)
	makeDue(k, 0, Passed)
	before, next := draws, k.Next()
	if err := k.SetConfig(Config{Interval: 5 * time.Second}, sec); err != nil || draws != before || k.Next() != next {
		t.Errorf("%v, %d draws more, next at %d instead of %d", err, draws-before, k.Next(), next)
	}
}

// The owner need say that there is traffic once in an interval only.
func TestTrafficOnceInAnIntervalIsEnough(t *testing.T) {
	k := newChecks(t, Config{Jitter: None})
	k.Update([]string{"a"}, 0)
	k.Used(sec)
	c, _ := k.Due(sec)
	k.Done(c, Passed, "", sec)
	c, _ = k.Due(6 * sec)
	k.Done(c, Passed, "", 6*sec)
	c, _ = k.Due(11 * sec) // the next word comes at 12 s at the latest
	k.Done(c, Passed, "", 11*sec)
	if k.Next() != 16*sec {
		t.Errorf("next at %d s, want 16", k.Next()/sec)
	}
}
