package evenkeel_test

import (
	"container/heap"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
)

// pending is a request that ends at an instant.
type pending struct {
	at      time.Duration
	pick    *evenkeel.Pick[int]
	outcome evenkeel.Outcome
}

type pendings []pending

func (q pendings) Len() int           { return len(q) }
func (q pendings) Less(i, j int) bool { return q[i].at < q[j].at }
func (q pendings) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *pendings) Push(x any)        { *q = append(*q, x.(pending)) }
func (q *pendings) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// Most endpoints let requests run out of time for five minutes while the others carry everything. Once they work
// again, the default policy asks each of them within a minute, however long the time limit is, and two
// minutes later they have their share.
func TestMajorityThatTimedOutIsAskedWithinAMinute(t *testing.T) {
	const (
		gap  = 20 * time.Millisecond
		down = 5 * time.Minute
		fair = down + 2*time.Minute
		end  = down + 4*time.Minute
	)
	for _, n := range []int{4, 10} {
		for _, limit := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
			p := newPool(t, evenkeel.Config{}, n)
			works := n/2 - 1
			var open pendings
			first, share := make([]time.Duration, n), make([]int, n)
			for now := time.Duration(0); now < end; now += gap {
				for len(open) > 0 && open[0].at <= now {
					e := heap.Pop(&open).(pending)
					e.pick.DoneAt(origin.Add(e.at), evenkeel.Result{Outcome: e.outcome})
				}
				if now%time.Second == 0 {
					p.Sweep(origin.Add(now))
				}
				k, err := p.PickAt(origin.Add(now), evenkeel.Request{})
				if err != nil {
					t.Fatal(err)
				}
				k.SetDeadline(origin.Add(now + limit))
				i := k.Handle()
				takes, outcome := time.Millisecond, evenkeel.Success
				if i >= works && now < down {
					takes, outcome = limit, evenkeel.Timeout
				}
				if now >= down && first[i] == 0 {
					first[i] = now - down + 1
				}
				if now >= fair {
					share[i]++
				}
				heap.Push(&open, pending{now + takes, &k, outcome})
			}
			for i := works; i < n; i++ {
				if first[i] == 0 || first[i] > time.Minute {
					t.Errorf("n = %d, time limit %v: %d is asked after %v, want 1m at most", n, limit, i, first[i])
				}
				if part := float64(share[i]*n) * float64(gap) / float64(end-fair); part < 0.8 {
					t.Errorf("n = %d, time limit %v: two minutes later %d has %.2f of its fair share", n, limit, i, part)
				}
			}
		}
	}
}
