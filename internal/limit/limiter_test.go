package limit

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

func newLimiter(tb testing.TB, c Config) *Limiter {
	tb.Helper()
	l, err := New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// distressed returns a Limiter whose limit has just appeared with n requests in flight, all
// acquired, and the instant.
func distressed(tb testing.TB, c Config, n int) (*Limiter, int64) {
	tb.Helper()
	l := newLimiter(tb, c)
	l.Sweep(0, 0)
	for range n {
		if !l.Acquire() {
			tb.Fatal("refused without distress")
		}
	}
	for range 20 {
		l.Observe(TimedOut, sec, sec)
	}
	l.Sweep(sec, int64(n))
	if _, ok := l.Limit(); !ok {
		tb.Fatal("no limit although everything times out")
	}
	return l, sec
}

// The goal, word for word: 1,000 open streams and a burst of 500 requests on a healthy pool
// are all sent.
func TestNothingIsLimitedWithoutDistress(t *testing.T) {
	l := newLimiter(t, Config{})
	now := int64(0)
	for range 100 { // streams come and go and are neither acquired nor observed
		for range 1000 {
			l.Observe(Answered, 10*ms, sec)
		}
		now = l.Sweep(now, 0)
	}
	for i := range 500 {
		if !l.Acquire() {
			t.Fatalf("request %d of a burst was refused", i)
		}
	}
	l.Sweep(now, 500)
	if n, ok := l.Limit(); ok || l.Refused() != 0 {
		t.Errorf("limit %d, %d refused; want none", n, l.Refused())
	}
}

func TestStreamsDoNotCountWhileThereIsALimit(t *testing.T) {
	l, now := distressed(t, Config{}, 10)
	// A thousand streams are open: the owner leaves them out of what is in flight.
	for range 10 {
		l.Release()
	}
	l.Sweep(now+100*ms, 0)
	for i := range 5 {
		if !l.Acquire() {
			t.Fatalf("request %d was refused beside streams", i)
		}
	}
}

func TestLimitBegins(t *testing.T) {
	for _, c := range []struct {
		config   Config
		inFlight int
		want     int
	}{
		{Config{}, 40, 40},
		{Config{}, 0, 1},
		{Config{Floor: 50}, 40, 50},
		{Config{Ceiling: 30}, 40, 30},
		{Config{Floor: 7, Ceiling: 7}, 40, 7},
	} {
		l, _ := distressed(t, c.config, c.inFlight)
		if n, _ := l.Limit(); n != c.want {
			t.Errorf("%+v with %d in flight: limit %d, want %d", c.config, c.inFlight, n, c.want)
		}
		more := 0
		for l.Acquire() {
			more++
		}
		if want := max(c.want-c.inFlight, 0); more != want {
			t.Errorf("%+v with %d in flight: %d more began, want %d", c.config, c.inFlight, more, want)
		}
	}
}

// A request that is made beyond the limit takes nothing from the others, however long it
// hangs.
func TestRequestsBeyondTheLimitTakeNothingFromTheOthers(t *testing.T) {
	l, now := distressed(t, Config{}, 3)
	var beyond []Permit
	for range 50 {
		if l.Acquire() {
			t.Fatal("a fourth request began")
		}
		l.AcquireBeyond()
		beyond = append(beyond, PermitBeyond(l, nil))
	}
	for range 5 {
		l.Observe(Answered, 300*ms, sec)
		now = l.Sweep(now, 53)
	}
	l.Release()
	if n, _ := l.Limit(); n < 3 || !l.Acquire() {
		t.Errorf("limit %d: nobody begins for the one that ended", n)
	}
	for i := range beyond {
		beyond[i].Release()
		beyond[i].Release()
	}
	if l.Beyond() != 0 || l.tokens.left() < 0 {
		t.Errorf("%d beyond the limit, %d tokens at rest", l.Beyond(), l.tokens.left())
	}
}

func TestDisabledNeverLimits(t *testing.T) {
	l := newLimiter(t, Config{Disabled: true})
	for range 1000 {
		l.Observe(TimedOut, sec, sec)
	}
	if next := l.Sweep(sec, 10); next != math.MaxInt64 {
		t.Errorf("next sweep at %d, want never", next)
	}
	if _, ok := l.Limit(); ok || !l.Acquire() {
		t.Error("limited although disabled")
	}
	l, now := distressed(t, Config{}, 10)
	if l.Acquire() {
		t.Error("an eleventh request began")
	}
	if err := l.SetConfig(Config{Disabled: true}); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.Limit(); ok || !l.Acquire() {
		t.Error("limited after it was disabled")
	}
	if err := l.SetConfig(Config{}); err != nil {
		t.Fatal(err)
	}
	l.Sweep(now+sec, 11)
	if _, ok := l.Limit(); ok || !l.Acquire() {
		t.Error("limited without new distress")
	}
}

func TestNewConfigBoundsTheLimitThatExists(t *testing.T) {
	l, now := distressed(t, Config{}, 100)
	if err := l.SetConfig(Config{Floor: -1}); err == nil {
		t.Error("a floor of -1 was taken")
	}
	if err := l.SetConfig(Config{Ceiling: 40}); err != nil {
		t.Fatal(err)
	}
	l.Sweep(now, 100)
	if n, _ := l.Limit(); n != 40 {
		t.Errorf("limit %d, want the new ceiling", n)
	}
	for range 60 {
		l.Release()
		if l.Acquire() {
			t.Fatal("a request began above the limit")
		}
	}
	l.Release()
	if !l.Acquire() || l.Acquire() {
		t.Error("want one request for the one that ended below the limit")
	}
}

func TestRefusalsAreTypedAndAllocateNothing(t *testing.T) {
	l, _ := distressed(t, Config{}, 3)
	if l.Acquire() {
		t.Fatal("a fourth request began")
	}
	err := fmt.Errorf("call: %w", l.Err())
	if over, ok := errors.AsType[*Overload](err); !ok || over.Limit != 3 || over.Endpoint || !errors.Is(err, ErrOverloaded) {
		t.Errorf("error %v, want an Overload with limit 3", err)
	}
	if !strings.Contains(err.Error(), "limit of 3 requests in flight of this pool") {
		t.Errorf("text %q", err)
	}
	if text := (&Overload{Limit: 2, Endpoint: true}).Error(); !strings.Contains(text, "2 requests in flight of each endpoint") {
		t.Errorf("text %q", text)
	}
	if err := newLimiter(t, Config{}).Err(); !errors.Is(err, ErrOverloaded) {
		t.Errorf("error %v", err)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if l.Acquire() || l.Err() == nil {
			t.Fatal("not refused")
		}
	}); n != 0 {
		t.Errorf("a refusal allocates %v times", n) // an overloaded client has no memory to spare
	}
}

// Limits stand on the path of every request.
func TestRequestPathAllocatesNothing(t *testing.T) {
	calm := newLimiter(t, Config{})
	tense, _ := distressed(t, Config{}, 3)
	tense.Release()
	budget, err := NewBudget(BudgetConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var c Cap
	now := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		for _, l := range []*Limiter{calm, tense} {
			if !l.Acquire() || !c.Acquire(1) {
				t.Fatal("refused")
			}
			l.Observe(Answered, ms, sec)
			p := PermitOf(l, &c)
			p.Release()
		}
		now += ms
		budget.Begin(now)
		if g, ok := budget.Try(now); ok {
			g.End()
		}
		budget.End()
	}); n != 0 {
		t.Errorf("a request allocates %v times", n)
	}
}

func TestConfigReportsAllProblems(t *testing.T) {
	err := Config{Floor: -3, Ceiling: MaxLimit + 1, PerEndpoint: -1}.Validate()
	for _, want := range []string{"limit: Config.Floor is -3, want 0 to", "limit: Config.Ceiling is 1073741825, want 0 to",
		"limit: Config.PerEndpoint is -1, want 0 to 1073741824"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	if err := (Config{Floor: 5, Ceiling: 4}).Validate(); err == nil || !strings.Contains(err.Error(), "at least Floor, which is 5") {
		t.Errorf("error %v", err)
	}
	if _, err := New(Config{Floor: -1}); err == nil {
		t.Error("New took a floor of -1")
	}
	for _, c := range []Config{{}, {Floor: 1, Ceiling: 1}, {Floor: MaxLimit, Ceiling: MaxLimit, PerEndpoint: MaxLimit}, {Disabled: true}} {
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
