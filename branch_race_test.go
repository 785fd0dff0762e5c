package evenkeel_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
)

// Users, lists, states, configs, sweeps, closing and opening at the same time.
func TestBranchesAtOnce(t *testing.T) {
	trunk, err := evenkeel.NewPool[int](evenkeel.Config{}, evenkeel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for k := range 6 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(k), 78))
			for range 30 {
				b, err := trunk.Branch()
				if err != nil {
					t.Error(err)
					return
				}
				liveOf(b, r)
				b.Close()
			}
		})
	}
	wg.Wait()
	for _, e := range trunk.Stats().Endpoints {
		if e.InFlight != 0 {
			t.Errorf("%s has %d in flight at rest", e.ID, e.InFlight)
		}
	}
}

// liveOf is a short life of a branch with two users.
func liveOf(b *evenkeel.Pool[int], r *rand.Rand) {
	var users sync.WaitGroup
	for range 2 {
		users.Go(func() {
			for i := range 200 {
				if k, err := b.Pick(evenkeel.Request{Key: uint64(i), HasKey: true}); err == nil {
					k.Done(evenkeel.Result{Outcome: walkOutcomes[i%len(walkOutcomes)]})
				}
			}
		})
	}
	for range 10 {
		_ = b.Update(members(1 + r.IntN(8)))
		b.SetState(fmt.Sprint("e", r.IntN(8)), evenkeel.State(r.IntN(3)))
		c := evenkeel.Config{Policy: everyPolicy[r.IntN(len(everyPolicy))]}
		_ = b.SetConfig(c)
		b.Sweep(time.Now())
		b.Stats()
	}
	users.Wait()
}
