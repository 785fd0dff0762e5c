package orca

import (
	"math"
	"testing"
	"time"
)

// Servers survive a panic of the functions of a configuration. The report goes without what they add then, and its
// rates are measured as ever, even if each call panics.
func TestTrackerMeasuresThoughItsFunctionsPanic(t *testing.T) {
	var cpuPanics, addPanics bool
	used := 0.0
	tr := NewTracker(TrackerConfig{
		CPU: func() (float64, float64, error) {
			if cpuPanics {
				panic("cpu")
			}
			return used, 1, nil
		},
		Add: func(r *Report) {
			r.Application = 0.5
			if addPanics {
				panic("add")
			}
		},
	})
	now, r := int64(0), Report{}
	run := func(seconds, qps int) (panics int) {
		for range seconds * qps {
			now += int64(time.Second) / int64(qps)
			used += 0.5 / float64(qps)
			tr.End(tr.Begin(now), now, Served)
			func() {
				defer func() {
					if recover() != nil {
						panics++
					}
				}()
				tr.Report(&r, now)
			}()
		}
		tr.Report(&r, now)
		return panics
	}
	want := func(what string, qps, cpu, application float64) {
		t.Helper()
		if math.Abs(r.QPS-qps) > 0.05*qps || math.Abs(r.CPU-cpu) > 0.03 || r.Application != application {
			t.Errorf("%s: %v a second, CPU %v, application %v, want %v, %v, %v", what, r.QPS, r.CPU, r.Application, qps, cpu, application)
		}
	}
	run(30, 100)
	want("before", 100, 0.5, 0.5)
	addPanics = true
	if n := run(30, 200); n < 200 {
		t.Errorf("Add panicked %d times in 30 s, want ten a second", n)
	}
	want("Add panics", 200, 0.5, 0)
	addPanics, cpuPanics = false, true
	run(30, 100)
	want("CPU panics", 100, 0, 0)
	cpuPanics = false
	run(1, 200)
	if r.CPU > 0.55 {
		t.Errorf("CPU %v by the time that was not measured, want 0.5", r.CPU)
	}
	run(30, 200)
	want("after", 200, 0.5, 0.5)
}
