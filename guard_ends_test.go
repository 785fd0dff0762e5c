package evenkeel_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// What the limit goes by: a twentieth of the requests that say something. Answers without a deadline are
// counted by how many have ended; what says nothing is not among them.
func TestLimitGoesByThoseEndsThatSaySomething(t *testing.T) {
	type ends struct {
		n       int
		outcome evenkeel.Outcome
		kind    picker.Kind
		took    time.Duration // of a deadline of a second; 0: without one
	}
	timeouts := func(n int) ends { return ends{n: n, outcome: evenkeel.Timeout} }
	for name, tc := range map[string]struct {
		ends []ends
		want bool
	}{
		"one in thirty":                  {[]ends{{n: 290, outcome: evenkeel.Success}, timeouts(10)}, false},
		"one in ten":                     {[]ends{{n: 90, outcome: evenkeel.Success}, timeouts(10)}, true},
		"one in ten and silent ones":     {[]ends{{n: 90, outcome: evenkeel.Success}, {n: 300}, timeouts(10)}, true},
		"one in ten and streams":         {[]ends{{n: 90, outcome: evenkeel.Success}, {n: 300, outcome: evenkeel.Success, kind: picker.Stream}, timeouts(10)}, true},
		"one in ten and fast failures":   {[]ends{{n: 90, outcome: evenkeel.Success}, {n: 300, outcome: evenkeel.Failure}, timeouts(10)}, true},
		"one in ten and outcomes of old": {[]ends{{n: 90, outcome: evenkeel.Success}, {n: 300, outcome: 77}, timeouts(10)}, true},
		"late answers":                   {[]ends{{n: 100, outcome: evenkeel.Success, took: 900 * time.Millisecond}}, true},
		"answers in time":                {[]ends{{n: 100, outcome: evenkeel.Success, took: 100 * time.Millisecond}}, false},
		"with and without a deadline":    {[]ends{{n: 290, outcome: evenkeel.Success}, {n: 10, outcome: evenkeel.Success, took: 900 * time.Millisecond}}, false},
	} {
		p := newPool(t, evenkeel.Config{Policy: picker.Random{}, Outlier: &outlier.Config{Mode: outlier.NoEjection}}, 5)
		now := origin
		p.Sweep(now)
		for _, e := range tc.ends {
			for range e.n {
				k, err := p.PickAt(now, evenkeel.Request{Kind: e.kind})
				if err != nil {
					t.Fatal(err)
				}
				if e.took > 0 {
					k.SetDeadline(now.Add(time.Second))
				}
				k.DoneAt(now.Add(e.took), evenkeel.Result{Outcome: e.outcome})
			}
		}
		now = now.Add(1100 * time.Millisecond)
		p.Sweep(now)
		if s := p.StatsAt(now); s.Limit != 0 != tc.want {
			t.Errorf("%s: the limit is %d, want one: %v", name, s.Limit, tc.want)
		}
	}
}

// The status of an answer's beginning holds for its end, which has none.
func TestStatusOfTheBeginningCounts(t *testing.T) {
	c := newTraffic(t, evenkeel.Config{Policy: picker.RoundRobin{}, Outlier: &outlier.Config{Mode: outlier.Envoy, MaxEjectionPercent: outlier.PercentOf(50)}}, 4)
	for range 40 {
		k, err := c.pool.PickAt(c.now, evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		status := 200
		if k.Handle() == 2 {
			status = 501 // no failure of an endpoint but with Envoy
		}
		k.AnsweredAt(c.now, evenkeel.Result{Outcome: evenkeel.Success, Status: picker.HTTPStatus(status)})
		k.DoneAt(c.now, evenkeel.Result{Outcome: evenkeel.Success})
	}
	for _, id := range []string{"e0", "e2"} {
		if e := c.stats(id); isOut(e) != (id == "e2") {
			t.Errorf("%s: %+v", id, e.Ejection)
		}
	}
}

// A stream is one success, however good its beginning and its end.
func TestStreamsSucceedOnce(t *testing.T) {
	rules := outlier.Config{Mode: outlier.A50, Interval: time.Second, MaxEjectionPercent: outlier.PercentOf(100), A50: outlier.A50Config{
		FailurePercentage: &outlier.FailurePercentage{Threshold: outlier.PercentOf(50), MinHosts: 1, RequestVolume: 10}}}
	c := newTraffic(t, evenkeel.Config{Policy: picker.RoundRobin{}, Outlier: &rules, Limit: evenkeel.LimitConfig{Disabled: true}}, 1)
	for i := range 20 {
		k, err := c.pool.PickAt(c.now, evenkeel.Request{Kind: picker.Stream})
		if err != nil {
			t.Fatal(err)
		}
		end := evenkeel.Result{Outcome: evenkeel.Failure}
		if i < 8 {
			k.FirstByteAt(c.now)
			end.Outcome = evenkeel.Success
		}
		k.DoneAt(c.now, end)
	}
	c.now = c.now.Add(1100 * time.Millisecond)
	c.pool.Sweep(c.now)
	if e := c.stats("e0"); !isOut(e) {
		t.Errorf("12 of 20 failed, and it is %+v", e.Ejection)
	}
}

// What is said of a request after its end is said of nobody.
func TestNothingCountsAfterTheEnd(t *testing.T) {
	rules := outlier.Config{Mode: outlier.A50, Interval: time.Second, A50: outlier.A50Config{
		FailurePercentage: &outlier.FailurePercentage{Threshold: outlier.PercentOf(30), MinHosts: 1, RequestVolume: 10}}}
	c := newTraffic(t, evenkeel.Config{Policy: picker.RoundRobin{}, Outlier: &rules, Limit: evenkeel.LimitConfig{Disabled: true}}, 3)
	for range 60 {
		k, err := c.pool.PickAt(c.now, evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		k.DoneAt(c.now, evenkeel.Result{Outcome: evenkeel.Success})
		k.AnsweredAt(c.now, evenkeel.Result{Outcome: evenkeel.Failure})
		k.DoneAt(c.now, evenkeel.Result{Outcome: evenkeel.Failure})
	}
	c.now = c.now.Add(1100 * time.Millisecond)
	c.pool.Sweep(c.now)
	for _, id := range []string{"e0", "e1", "e2"} {
		if e := c.stats(id); isOut(e) {
			t.Errorf("%s is out: %+v", id, e.Ejection)
		}
	}
}

// A Pick is copied when it is returned, in steps of 16 bytes. Were the last of them to overlap the one before, the next
// copy would wait for both, which costs as much as an atomic addition.
func TestPickIsCopiedInWholeSteps(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("a matter of 64-bit machines")
	}
	if size := unsafe.Sizeof(evenkeel.Pick[*int]{}); size%16 != 0 {
		t.Errorf("a Pick of a pointer has %d bytes, want a multiple of 16", size)
	}
}
