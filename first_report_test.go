package evenkeel_test

import (
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/picker"
)

// An out-of-band stream's first report may come before the pool is told that the endpoint is ready.
func TestReportThatComesBeforeReadyCounts(t *testing.T) {
	rig := newReportRig(t, evenkeel.Config{Policy: picker.WeightedRoundRobin{}, Reports: &evenkeel.ReportsConfig{
		Weights: evenkeel.ReportedWeights, Weight: orca.WeightConfig{Blackout: -1}}})
	members := []evenkeel.Member[int]{
		{Endpoint: evenkeel.Endpoint{ID: "0"}, NotReady: true, Handle: 0}, {Endpoint: evenkeel.Endpoint{ID: "1"}, NotReady: true, Handle: 1}}
	if err := rig.pool.UpdateAt(rig.now, members); err != nil {
		t.Fatal(err)
	}
	for i, c := range []float64{100, 300} {
		r := capacity(c)
		rig.pool.ReportAt(rig.now, members[i].ID, &r)
	}
	for _, id := range []string{"0", "1"} {
		rig.pool.SetStates([]evenkeel.StateChange{{ID: id, State: evenkeel.Ready}})
	}
	rig.now = rig.now.Add(2 * time.Second)
	rig.pool.Sweep(rig.now)
	if got := rig.shares(400); got[1] != 300 {
		t.Errorf("shares %v, want 100 and 300", got[:2])
	}
}
