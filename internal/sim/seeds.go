package sim

import (
	"math"
	"sync"
	"sync/atomic"
)

// Stat is the mean and the standard deviation of one run over several runs.
type Stat struct {
	Mean, SD float64
	// N is the number of runs.
	N int
}

// Over computes f for each result and returns mean and standard deviation.
func Over(results []*Result, f func(*Result) float64) Stat {
	s := Stat{N: len(results)}
	if s.N == 0 {
		return s
	}
	values := make([]float64, s.N)
	for i, r := range results {
		values[i] = f(r)
		s.Mean += values[i]
	}
	s.Mean /= float64(s.N)
	if s.N > 1 {
		for _, v := range values {
			s.SD += float64((v - s.Mean) * (v - s.Mean))
		}
		s.SD = math.Sqrt(s.SD / float64(s.N-1))
	}
	return s
}

// Seeds returns the seeds 1 to k.
func Seeds(k int) []uint64 {
	seeds := make([]uint64, k)
	for i := range seeds {
		seeds[i] = uint64(i + 1)
	}
	return seeds
}

// Job is one run to be done.
type Job struct {
	Scenario Scenario
	Policy   Policy
	Seed     uint64
}

// RunAll does all jobs, workers of them at a time, and returns their results in the
// order of the jobs: how many workers there are changes nothing but the time it takes.
// Fewer than 1 count as 1. progress, if not nil, is called after each job with the
// number of those done, from one goroutine at a time. The error is that of the first job
// in order that has one; the results are then incomplete.
func RunAll(jobs []Job, workers int, progress func(done int)) ([]*Result, error) {
	results, errs := make([]*Result, len(jobs)), make([]error, len(jobs))
	var next atomic.Int64
	var mu sync.Mutex
	done := 0
	var group sync.WaitGroup
	for range min(max(workers, 1), len(jobs)) {
		group.Go(func() {
			for {
				i := int(next.Add(1) - 1)
				if i >= len(jobs) {
					return
				}
				results[i], errs[i] = Run(jobs[i].Scenario, jobs[i].Policy, jobs[i].Seed)
				mu.Lock()
				done++
				if progress != nil {
					progress(done)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// RunSeeds runs a scenario with a policy for each seed, workers at a time.
func RunSeeds(s Scenario, p Policy, seeds []uint64, workers int) ([]*Result, error) {
	jobs := make([]Job, len(seeds))
	for i, seed := range seeds {
		jobs[i] = Job{s, p, seed}
	}
	return RunAll(jobs, workers, nil)
}
