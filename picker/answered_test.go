package picker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/ewma"
	"github.com/evenkeel/evenkeel/picker"
)

// counting is a signal that asks for everything and keeps the samples of its only endpoint.
type counting struct{ samples *[]int64 }

func (counting) Cost(*picker.Record, int64) int64    { return 0 }
func (c counting) NewEstimator() picker.Estimator    { return c }
func (c counting) Observe(x, _ int64)                { *c.samples = append(*c.samples, x) }
func (c counting) Log2(int64) (lg int64, known bool) { return 0, false }
func (counting) Needs() picker.Need {
	return picker.NeedLatency | picker.NeedAge | picker.NeedSuccess | picker.NeedEstimator
}

// lesson is what a request has taught.
type lesson struct {
	Samples  []int64 // latencies and lower bounds
	Failures int
	Avoided  bool
}

// teachings are what an outcome teaches of a request that took x (outcome.go's table). A lower bound
// is a sample here: this estimator knows nothing to compare it with.
func teachings(o picker.Outcome, x int64) lesson {
	switch o {
	case picker.Success, picker.Canceled:
		return lesson{Samples: []int64{x}}
	case picker.Timeout:
		return lesson{Samples: []int64{x}, Failures: 1}
	case picker.Failure, picker.Unreached:
		return lesson{Failures: 1}
	case picker.Overload:
		return lesson{Avoided: true}
	}
	return lesson{}
}

// learner is an endpoint that has succeeded once, so that each failure adds a step of a
// tenth of what is left of success.
type learner struct {
	s       *picker.Snapshot
	rec     *picker.Record
	samples []int64
}

func newLearner(t *testing.T) *learner {
	t.Helper()
	l := &learner{}
	_, l.s = build(t, picker.P2C{Signal: counting{&l.samples}}, endpoints(1), nil)
	l.rec = l.s.Record(0)
	p := holdAt(t, l.s, 0, 0)
	p.Done(10*ms, picker.Result{Outcome: picker.Success})
	l.samples = nil
	return l
}

func (l *learner) lesson(now int64) lesson {
	got := lesson{Samples: slices.Clone(l.samples), Avoided: l.rec.AvoidFor(now) > 0}
	for left := l.rec.Success(now); left < 0.95; left /= 0.9 {
		got.Failures++
	}
	return got
}

func (l lesson) String() string {
	return fmt.Sprintf("samples %v, %d failures, avoided %v", l.Samples, l.Failures, l.Avoided)
}

// Every pair of how an answer begins and ends: the beginning teaches at once what it would at
// Done, but for Unknown, which is no beginning; then Done teaches what it has not, which is a bad
// end of what began well; and the request leaves the in-flight count then, and only then.
func TestAnsweredAndDoneTeachEachOutcomeOnce(t *testing.T) {
	for begin := picker.Unknown; begin <= picker.Canceled; begin++ {
		for end := picker.Unknown; end <= picker.Canceled; end++ {
			t.Run(fmt.Sprintf("%v/%v", begin, end), func(t *testing.T) { testAnswered(t, begin, end) })
		}
	}
}

func testAnswered(t *testing.T, begin, end picker.Outcome) {
	l := newLearner(t)
	check := func(when string, now int64, want lesson) {
		t.Helper()
		if got := l.lesson(now); got.String() != want.String() {
			t.Errorf("%s it has taught %v, want %v", when, got, want)
		}
	}
	p := holdAt(t, l.s, 0, 20*ms)
	p.Answered(25*ms, picker.Result{Outcome: begin})
	want := teachings(begin, 5*ms)
	check("when it begins", 25*ms, want)
	if _, ageing := l.rec.AgeLog2(int64(time.Second)); ageing != (begin == picker.Unknown) {
		t.Errorf("when it has begun, ageing is %v", ageing)
	}
	if begin != picker.Unknown {
		p.Answered(26*ms, picker.Result{Outcome: picker.Failure})
		p.Answered(26*ms, picker.Result{Outcome: picker.Success})
		p.FirstByte(27 * ms)
		check("called again", 27*ms, want)
	}
	if n := l.rec.InFlight(); n != 1 {
		t.Errorf("%d in flight before Done", n)
	}
	p.Done(28*ms, picker.Result{Outcome: end})
	switch late := teachings(end, 8*ms); begin {
	case picker.Unknown:
		want = late
	case picker.Success:
		want.Failures, want.Avoided = late.Failures, late.Avoided
	}
	check("in the end", 28*ms, want)
	p.Done(29*ms, picker.Result{Outcome: picker.Failure})
	check("done again", 29*ms, want)
	if n := l.rec.InFlight(); n != 0 || l.rec.Picks() != 2 {
		t.Errorf("%d in flight and %d picks at rest", n, l.rec.Picks())
	}
}

// After a first byte the latency is known, and Answered adds the outcome alone.
func TestAnsweredAfterTheFirstByteTeachesNoLatency(t *testing.T) {
	for o := picker.Success; o <= picker.Canceled; o++ {
		l := newLearner(t)
		p := holdAt(t, l.s, 0, 20*ms)
		p.FirstByte(23 * ms)
		p.Answered(25*ms, picker.Result{Outcome: o})
		want := teachings(o, 0)
		want.Samples = []int64{3 * ms}
		if got := l.lesson(25 * ms); got.String() != want.String() {
			t.Errorf("%v: %v, want %v", o, got, want)
		}
		p.Done(28*ms, picker.Result{Outcome: picker.Success})
		if got := l.lesson(28 * ms); got.String() != want.String() {
			t.Errorf("%v, and then a good end: %v, want %v", o, got, want)
		}
	}
}

// A success that is seen at the beginning of an answer counts for the score at once.
func TestAnsweredForgivesFailuresAtOnce(t *testing.T) {
	l := newLearner(t)
	for range 5 {
		p := holdAt(t, l.s, 0, 20*ms)
		p.Done(20*ms, picker.Result{Outcome: picker.Failure})
	}
	now := int64(2 * time.Second)
	faded := l.rec.Success(now)
	p := holdAt(t, l.s, 0, now-ms)
	p.Answered(now, picker.Result{Outcome: picker.Success})
	after := l.rec.Success(now)
	if after < faded+0.1 {
		t.Errorf("success %.3f, and %.3f when an answer has begun well", faded, after)
	}
	p.Done(now, picker.Result{Outcome: picker.Success})
	if got := l.rec.Success(now); got != after {
		t.Errorf("success %.3f at the beginning, %.3f at the end of one answer", after, got)
	}
}

// Where the kind is unknown, age runs from the last Done, also of a request that has taught its end
// at the beginning.
func TestDoneAfterAnsweredIsALastDone(t *testing.T) {
	_, s, r := one(t)
	pickAt(t, s, picker.Request{Kind: picker.UnknownKind}, 0) // a stream, perhaps
	now := 30 * int64(time.Second)
	p := pickAt(t, s, picker.Request{Kind: picker.UnknownKind}, now-10*ms)
	p.Answered(now-ms, picker.Result{Outcome: picker.Success})
	p.Done(now, picker.Result{Outcome: picker.Success})
	if lg, ok := r.AgeLog2(now + 20*ms); ok && ewma.Exp2(lg) > 21e6 {
		t.Errorf("age %v, 20 ms after a Done", time.Duration(ewma.Exp2(lg)))
	}
}
