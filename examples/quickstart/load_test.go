package main

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestThePlanDependsOnTheSettingsAlone(t *testing.T) {
	s := settings{duration: 100 * time.Second, rate: 100, seed: 3}
	requests := plan(s)
	if !slices.Equal(requests, plan(s)) {
		t.Error("the same settings give different plans")
	}
	other := s
	other.seed++
	if slices.Equal(requests, plan(other)) {
		t.Error("different seeds give the same plan")
	}
	// 10,000 expected, with a standard deviation of 100; the mean of as many exponential
	// times has one of 1 %.
	if n := len(requests); math.Abs(float64(n)-10_000) > 400 {
		t.Errorf("%d requests, want 10,000 ± 400", n)
	}
	var work time.Duration
	for _, r := range requests {
		work += r.work
	}
	if mean := work / time.Duration(len(requests)); mean < meanWork*96/100 || mean > meanWork*104/100 {
		t.Errorf("the mean service time is %v, want %v ± 4 %%", mean, meanWork)
	}
	inOrder := slices.IsSortedFunc(requests, func(a, b request) int { return cmp.Compare(a.due, b.due) })
	if last := requests[len(requests)-1]; !inOrder || requests[0].due < 0 || last.due >= s.duration {
		t.Error("the requests are not in order between 0 and the duration")
	}
}

// testLoad is a load of the given requests, which call answers.
func testLoad(requests []request, call callFunc) (*load, *lane) {
	l := &lane{call: call, fleet: &fleet{}}
	l.prepare(len(requests))
	return &load{settings: settings{duration: 30 * time.Second}, requests: requests, lanes: []*lane{l}}, l
}

func TestRequestsAreSentWhenDueWhateverBecameOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		start := time.Now()
		d, l := testLoad([]request{{0, 0}, {10 * ms, 5 * ms}, {10 * ms, 1}, {20 * ms, 300 * ms}},
			func(ctx context.Context, work time.Duration) error {
				switch work {
				case 0: // hangs
					<-ctx.Done()
					return ctx.Err()
				case 1:
					return errors.New("no")
				}
				time.Sleep(work)
				return nil
			})
		d.run(t.Context())
		if want := []time.Duration{timeout, 5 * ms, 0, 300 * ms}; !slices.Equal(l.took, want) {
			t.Errorf("requests took %v, want %v", l.took, want)
		}
		if n := l.errors.Load(); n != 2 {
			t.Errorf("%d errors, want 2: the timeout and the failure", n)
		}
		if e := time.Since(start); e != timeout || d.at() != 20*ms || d.paused != 0 {
			t.Errorf("run returned after %v at %v with a pause of %v, want %v, when the last request ended, at 20ms with none",
				e, d.at(), d.paused, timeout)
		}
	})
}

func TestTheOutageIsTheMiddleThird(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests []request
		for s := range 30 {
			requests = append(requests, request{due: time.Duration(s) * time.Second})
		}
		var broken []int
		start := time.Now()
		var d *load
		d, l := testLoad(requests, func(context.Context, time.Duration) error {
			if d.lanes[0].fleet.outage.Load() {
				broken = append(broken, int(time.Since(start).Seconds()))
			}
			return nil
		})
		d.run(t.Context())
		if want := []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}; !slices.Equal(broken, want) {
			t.Errorf("server broken in seconds %v, want %v", broken, want)
		}
		if l.fleet.outage.Load() {
			t.Error("the server is still broken")
		}
	})
}

func TestABusyMachinePutsOffTheRest(t *testing.T) {
	d := &load{}
	for _, tc := range []struct{ late, want, paused time.Duration }{
		{-time.Second, 0, 0},
		{hiccup, 0, 0}, // a late timer: the request waited for it
		{hiccup + 1, hiccup + 1, hiccup + 1},
		{hiccup / 2, 0, hiccup + 1},
		{time.Minute, time.Minute, time.Minute + hiccup + 1},
	} {
		if got := d.putOff(tc.late); got != tc.want || d.paused != tc.paused {
			t.Errorf("late by %v: put off by %v, in all %v, want %v and %v", tc.late, got, d.paused, tc.want, tc.paused)
		}
	}
}

func TestWhatWasPutOffForTooLongIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var sent []time.Duration
		d, l := testLoad([]request{{10 * time.Second, 0}, {24 * time.Second, 0}, {25 * time.Second, 0}, {26 * time.Second, 0}},
			func(context.Context, time.Duration) error {
				sent = append(sent, time.Since(start))
				return nil
			})
		d.paused = 20 * time.Second // as if before the first
		d.run(t.Context())
		if want := []time.Duration{30 * time.Second, 44 * time.Second}; !slices.Equal(sent, want) || d.unsent != 2 {
			t.Errorf("sent at %v, %d left out, want %v and 2: all before 45s", sent, d.unsent, want)
		}
		if l.took[0] != 0 || l.took[1] != 0 {
			t.Errorf("the requests took %v, want 0", l.took[:2])
		}
	})
}
