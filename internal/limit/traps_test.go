package limit

import "testing"

// Rejections of the client's own must not keep it rejecting: the limiter recovers when the
// load falls.
func TestBug32RefusalsDoNotKeepTheLimitShut(t *testing.T) {
	l, now := distressed(t, Config{}, 2)
	for range 100 { // ten seconds full, hosts healthy
		for range 50 {
			l.Acquire()
		}
		now = l.Sweep(now, 2)
	}
	if l.Refused() == 0 {
		t.Fatal("nothing was refused")
	}
	l.Release()
	l.Release()
	for range 100 { // the load falls to one request at a time, well served
		if !l.Acquire() {
			t.Fatal("refused at low load")
		}
		l.Observe(Answered, 10*ms, sec)
		l.Release()
		now = l.Sweep(now, 0)
	}
	for range 100 {
		now = l.Sweep(now, 0)
	}
	if n, ok := l.Limit(); ok {
		t.Errorf("the limit is still %d after ten calm seconds", n)
	}
}

// A retry that waits in its back-off counts from its grant to its end.
func TestBug49RetriesInBackOffCount(t *testing.T) {
	b := newBudget(t, BudgetConfig{})
	for range 100 {
		b.Begin(0)
	}
	var waiting []Grant
	for range 100 { // all fail, and would retry in ten seconds
		if g, ok := b.Try(0); ok {
			waiting = append(waiting, g)
		}
	}
	if len(waiting) != 20 {
		t.Fatalf("%d wait, want 20 %% of the 100 in flight", len(waiting))
	}
	for now := range int64(10) {
		if _, ok := b.Try(now * sec); ok {
			t.Fatalf("one more was granted at %d s, while 20 wait", now)
		}
	}
	waiting[0].End()
	if _, ok := b.Try(9 * sec); !ok {
		t.Error("none was granted although one had ended")
	}
}

// Tokens cannot be lost for good.
func TestBug50BudgetComesBackAfterAnOutage(t *testing.T) {
	b := newBudget(t, BudgetConfig{})
	try := func(now int64) bool {
		g, ok := b.Try(now)
		g.End()
		return ok
	}
	denied := 0
	for i := range int64(600) {
		b.Begin(i * ms)
		if !try(i * ms) {
			denied++
		}
		b.End()
	}
	if denied == 0 {
		t.Fatal("600 retries in a second were all granted")
	}
	for i := range int64(10_000) {
		b.Begin(sec + i*ms)
		b.End()
	}
	if !try(11 * sec) {
		t.Error("no retry after 10,000 successes")
	}
}

// A long incident must not become the new normal.
func TestBug64LimitIsBackWithinAMinuteOfTenBadOnes(t *testing.T) {
	l, now := distressed(t, Config{}, 100)
	inFlight := int64(100)
	for end := now + 600*sec; now < end; { // everything takes ten times as long
		for range 20 {
			l.Observe(Answered, 900*ms, sec)
		}
		now = l.Sweep(now, inFlight)
	}
	for range inFlight {
		l.Release()
	}
	start := now
	for ; now < start+60*sec; now = l.Sweep(now, 0) {
		for range 50 {
			if l.Acquire() {
				l.Observe(Answered, 90*ms, sec)
				l.Release()
			}
		}
	}
	if n, ok := l.Limit(); ok {
		t.Errorf("the limit is still %d a minute later", n)
	}
}
