package main

import (
	"slices"

	"github.com/evenkeel/evenkeel/internal/sim"
)

// outcome is what all runs gave.
type outcome struct {
	requests int // simulated in all, those of the bounds included
	tallies  []*tally
	sweeps   [][]curve // of each sweep, for each line
}

// curve is a line's p99 in milliseconds at each point of a sweep, of each seed.
type curve [][]float64

// task is one run and where its result goes.
type task struct {
	job  sim.Job
	fold func(*sim.Result)
}

// simulate does all runs, at most workers of them at a time. Results are folded in the
// order of the tasks, so that the number of workers changes nothing.
func (p *plan) simulate(workers int, shown *progress) (*outcome, error) {
	workers = p.workers(workers)
	o := &outcome{}
	tasks := slices.Concat(p.mainTasks(o), p.sweepTasks(o))
	shown.start(len(tasks))
	done := 0
	for chunk := range slices.Chunk(tasks, p.batch(workers)) {
		jobs := make([]sim.Job, len(chunk))
		for i, t := range chunk {
			jobs[i] = t.job
			jobs[i].Scenario = p.watched(t.job.Scenario, shown.worked)
		}
		results, err := sim.RunAll(jobs, workers, func(n int) { shown.done(done + n) })
		if err != nil {
			return nil, err
		}
		for i, r := range results {
			o.requests += r.Picks
			chunk[i].fold(r)
		}
		done += len(chunk)
	}
	return o, nil
}

// seedsOf returns the first n seeds.
func (p *plan) seedsOf(n int) []uint64 {
	seeds := sim.Seeds(n)
	for i := range seeds {
		seeds[i] += p.seed - 1
	}
	return seeds
}

// mainTasks are the runs of the fleet as it is.
func (p *plan) mainTasks(o *outcome) []task {
	var tasks []task
	for _, c := range p.lines {
		t := newTally(p)
		o.tallies = append(o.tallies, t)
		for _, seed := range p.seedsOf(p.seeds) {
			tasks = append(tasks, task{sim.Job{Scenario: p.scenario, Policy: c.Policy, Seed: seed}, t.fold})
		}
	}
	return tasks
}

// sweepTasks are those of the fleets of sweeps.
func (p *plan) sweepTasks(o *outcome) []task {
	var tasks []task
	for _, w := range p.sweeps {
		curves := make([]curve, len(p.lines))
		o.sweeps = append(o.sweeps, curves)
		for k, c := range p.lines {
			curves[k] = make(curve, len(w.points))
			for i, at := range w.points {
				if w.boundOnce && c.bound && i > 0 {
					continue
				}
				for _, seed := range p.seedsOf(p.sweepRuns) {
					fold := func(r *sim.Result) { curves[k][i] = append(curves[k][i], millis(r.Total.Latency().Quantile(0.99))) }
					tasks = append(tasks, task{sim.Job{Scenario: at.scenario, Policy: c.Policy, Seed: seed}, fold})
				}
			}
		}
	}
	return tasks
}
