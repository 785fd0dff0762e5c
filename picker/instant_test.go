package picker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

// shown is all that a record shows, with a request in flight, a minute after another one ended.
func shown(g *picker.Registry, s *picker.Snapshot, now int64) string {
	g.Sweep(now)
	s.Sweep(now)
	now += int64(time.Minute)
	r := s.Record(0)
	latency, known := r.Latency(now)
	peak, _ := r.PeakLatency(now)
	age, _ := r.AgeLog2(now)
	return fmt.Sprint(latency, known, peak, age, r.Success(now), r.InFlight(), r.Picks(), r.AvoidFor(now), r.Share(), r.Epoch())
}

// A Done that says it needs no instant teaches the same with one and without, whatever the policy, the kind of the
// request, and the beginning and the end of its answer.
func TestDoneThatNeedsNoInstantTeachesTheSameWithout(t *testing.T) {
	outcomes := []picker.Outcome{picker.Unknown, picker.Success, picker.Failure, picker.Unreached, picker.Timeout, picker.Overload, picker.Canceled}
	spared := 0
	for _, policy := range []picker.Policy{picker.Adaptive{}, picker.P2C{}, picker.P2C{Signal: picker.InFlight}, picker.RoundRobin{}} {
		for _, kind := range []picker.Kind{picker.Unary, picker.Stream, picker.UnknownKind} {
			for begin := range len(outcomes) + 1 { // the last: no beginning
				for _, end := range outcomes {
					request := func(spare bool) string {
						g, s := build(t, policy, endpoints(1), func() uint64 { return 1 << 40 })
						now := answerEvery(t, s, 0, 20, usual, 0)
						older, _, err1 := s.Pick(picker.Request{Kind: kind}, now)
						p, _, err2 := s.Pick(picker.Request{Kind: kind}, now)
						if err1 != nil || err2 != nil {
							t.Fatal(err1, err2)
						}
						defer older.Done(now, picker.Result{})
						if now += int64(usual); begin < len(outcomes) {
							p.Answered(now, picker.Result{Outcome: outcomes[begin], RetryAfter: time.Hour})
						}
						now += int64(usual)
						r := picker.Result{Outcome: end, RetryAfter: time.Hour}
						if spare && !p.NeedsInstant(r) {
							spared++
							p.Done(0, r)
						} else {
							p.Done(now, r)
						}
						return shown(g, s, now)
					}
					if with, without := request(false), request(true); with != without {
						t.Errorf("%T, %v, beginning %d, end %v: with its instant %s, without %s", policy, kind, begin, end, with, without)
					}
				}
			}
		}
	}
	if spared == 0 {
		t.Error("every Done needs its instant")
	}
}

// The end of most answers of HTTP needs none: of those that began well by the default policy, and of all by a
// policy that learns nothing, unless it is an overload.
func TestMostEndsOfAnswersNeedNoInstant(t *testing.T) {
	for _, c := range []struct {
		policy picker.Policy
		begin  bool
		end    picker.Outcome
		want   bool
	}{
		{picker.Adaptive{}, true, picker.Success, false},
		{picker.Adaptive{}, true, picker.Canceled, false},
		{picker.Adaptive{}, true, picker.Failure, true},
		{picker.Adaptive{}, false, picker.Success, true},
		{picker.RoundRobin{}, false, picker.Success, false},
		{picker.RoundRobin{}, true, picker.Failure, false},
		{picker.RoundRobin{}, false, picker.Overload, true},
	} {
		_, s := build(t, c.policy, endpoints(1), nil)
		p := holdAt(t, s, 0, 0)
		if c.begin {
			p.Answered(int64(usual), picker.Result{Outcome: picker.Success})
		}
		if got := p.NeedsInstant(picker.Result{Outcome: c.end}); got != c.want {
			t.Errorf("%T, begun %v, end %v: needs its instant %v, want %v", c.policy, c.begin, c.end, got, c.want)
		}
		p.Done(int64(2*usual), picker.Result{Outcome: c.end})
	}
}
