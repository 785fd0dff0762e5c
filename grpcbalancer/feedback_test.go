package grpcbalancer

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	grpcorca "google.golang.org/grpc/orca"

	"github.com/evenkeel/evenkeel/internal/testcost"
)

// worker is what a server has to work with: it reports how much of its capacity its calls of the last second took.
type worker struct {
	mu       sync.Mutex
	capacity float64 // calls a second, not 0
	calls    []time.Time
}

func (w *worker) work(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.calls = append(w.calls, now)
	for now.Sub(w.calls[0]) >= time.Second {
		w.calls = w.calls[1:]
	}
	r := grpcorca.CallMetricsRecorderFromContext(ctx)
	r.SetQPS(float64(len(w.calls)))
	r.SetApplicationUtilization(float64(len(w.calls)) / w.capacity)
	return nil
}

func (w *worker) becomes(capacity float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.capacity = capacity
}

// Weights by feedback, from reports of grpc-go's own servers with the answers: whatever they can do, all are used alike after a
// while, and are so again when one of them can do less.
func TestFeedbackGivesServersTheSharesThatTheyCanTake(t *testing.T) {
	if testcost.Race {
		t.Skip("slow, and its calls come one after the other")
	}
	synctest.Test(t, func(t *testing.T) {
		const config = `{"policy": "weighted", "outlier": {"mode": "off"}, "reports": {"weights": "feedback", "feedback": {"smoothing": "1s"},
			"weight": {"blackout": "1s", "period": "1s"}}}`
		p := newPipedOf(t, config, 3, []grpc.ServerOption{grpcorca.CallMetricsServerOption(nil)})
		workers := []*worker{{}, {}, {}}
		for i, w := range workers {
			p.servers[i].answers(w.work)
		}
		shares := func(calls int) (of []float64) {
			for _, b := range p.servers {
				of = append(of, -float64(b.calls.Load()))
			}
			for range calls {
				p.calls(1)
				time.Sleep(10 * time.Millisecond)
			}
			for i, b := range p.servers {
				of[i] = (of[i] + float64(b.calls.Load())) / float64(calls)
			}
			return of
		}
		for _, step := range []struct{ capacities, want [3]float64 }{
			{[3]float64{50, 100, 200}, [3]float64{1. / 7, 2. / 7, 4. / 7}},
			{[3]float64{50, 100, 50}, [3]float64{1. / 4, 1. / 2, 1. / 4}},
		} {
			for i, c := range step.capacities {
				workers[i].becomes(c)
			}
			shares(3000) // 30 s
			for i, got := range shares(1000) {
				if math.Abs(got-step.want[i]) > 0.05*step.want[i] {
					t.Errorf("capacities %v: server %d gets %.3f of the calls, want %.3f", step.capacities, i, got, step.want[i])
				}
			}
		}
		if s := p.policy().pool.Stats(); s.BadReports != 0 {
			t.Errorf("%d bad reports: %v", s.BadReports, s.BadReport)
		}
	})
}
