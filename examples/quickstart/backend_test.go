package main

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// served is how one request of a test ended, and when.
type served struct {
	at  time.Duration
	err error
}

// arrival is one request of a test: when it comes, what it needs, how long it waits.
type arrival struct{ at, work, patience time.Duration }

// serveAll lets the requests come to server i of a fleet with an outage that begins
// after 1 s and ends after 2 s. It must run in a bubble.
func serveAll(i int, arrivals []arrival) ([]served, *backend) {
	f := &fleet{}
	for k := range fleetSize {
		f.add(k)
	}
	start := time.Now()
	time.AfterFunc(time.Second, func() { f.outage.Store(true) })
	time.AfterFunc(2*time.Second, func() { f.outage.Store(false) })
	got := make([]served, len(arrivals))
	var open sync.WaitGroup
	for k, a := range arrivals {
		open.Go(func() {
			time.Sleep(a.at)
			ctx, cancel := context.WithTimeout(context.Background(), a.patience)
			defer cancel()
			err := f.backends[i].handle(ctx, a.work)
			got[k] = served{time.Since(start), err}
		})
	}
	open.Wait()
	time.Sleep(time.Until(start.Add(3 * time.Second))) // no timer is left
	return got, f.backends[i]
}

func TestRequestsWaitForTheWorkBeforeThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		got, b := serveAll(0, []arrival{
			{0, 10 * ms, time.Second},
			{2 * ms, 5 * ms, time.Second},
			{3 * ms, 1 * ms, 4 * ms}, // leaves the queue at 7 ms
			{4 * ms, 1 * ms, time.Second},
			{30 * ms, 2 * ms, time.Second}, // meets nobody
			{40 * ms, 9 * ms, 1 * ms},      // leaves in the slot: the work goes on
			{41 * ms, 1 * ms, time.Second},
		})
		want := []served{
			{10 * ms, nil}, {15 * ms, nil}, {7 * ms, context.DeadlineExceeded}, {16 * ms, nil},
			{32 * ms, nil}, {49 * ms, nil}, {50 * ms, nil},
		}
		if !slices.Equal(got, want) {
			t.Errorf("served %v, want %v", got, want)
		}
		if n := b.arrived.Load(); n != 7 {
			t.Errorf("%d requests arrived, want 7", n)
		}
	})
}

func TestTheSlowServerTakesTenTimesAsLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, _ := serveAll(slowServer, []arrival{{0, 5 * time.Millisecond, time.Second}})
		if want := 50 * time.Millisecond; got[0] != (served{want, nil}) {
			t.Errorf("served %v, want after %v", got[0], want)
		}
	})
}

func TestTheBrokenServerFailsInTheOutagePastItsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		arrivals := []arrival{
			{990 * ms, 50 * ms, time.Second}, // in the slot when the outage begins
			{1001 * ms, 5 * ms, time.Second},
			{1001 * ms, 5 * ms, time.Second},
			{1999 * ms, 5 * ms, time.Second},
			{2001 * ms, 5 * ms, time.Second},
		}
		got, b := serveAll(brokenServer, arrivals)
		want := []served{
			{1040 * ms, nil}, {1002 * ms, errBroken}, {1002 * ms, errBroken}, {2000 * ms, errBroken}, {2006 * ms, nil},
		}
		if !slices.Equal(got, want) {
			t.Errorf("served %v, want %v", got, want)
		}
		if s := b.fleet.brokenShare(); s != (share{3, 3}) {
			t.Errorf("the broken server's share of the outage is %v, want 3 of 3", s)
		}
		others, _ := serveAll(0, arrivals)
		for _, s := range others {
			if s.err != nil {
				t.Errorf("another server says %v", s.err)
			}
		}
	})
}
