package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/orca"
)

// weightConfigs are valid ones, each with one field that is not zero.
func weightConfigs() []reflect.Value {
	var all []reflect.Value
	for _, c := range []orca.WeightConfig{
		{Utilization: []string{"named_metrics.queue", orca.CPUName}},
		{ErrorPenalty: orca.NoErrorPenalty}, {ErrorPenalty: 2},
		{Blackout: -1}, {Blackout: time.Second}, {Expiry: time.Minute}, {Period: 3 * time.Second},
		{Least: 0.25}, {Most: 3}, {Hysteresis: -1}, {Hysteresis: 0.5}, {MeanForUnknown: true},
	} {
		all = append(all, reflect.ValueOf(c))
	}
	return all
}

func TestWeightConfigsCoverEveryField(t *testing.T) {
	set := map[string]bool{}
	for _, v := range weightConfigs() {
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				set[v.Type().Field(i).Name] = true
			}
		}
	}
	if n := reflect.TypeFor[orca.WeightConfig]().NumField(); len(set) != n {
		t.Errorf("the test sets %v, want all %d fields", set, n)
	}
}

func TestReportsAsAnOperatorWritesThem(t *testing.T) {
	c, report, err := Parse([]byte(`{"policy": "weighted", "reports": {"weights": "reported",
		"weight": {"utilization": ["named_metrics.queue", "cpu_utilization"], "blackout": "-1ns"},
		"out_of_band": "10s", "ask": "text"}}`))
	if err != nil || len(report.Unknown) > 0 {
		t.Fatal(err, report)
	}
	want := evenkeel.ReportsConfig{
		Weights:   evenkeel.ReportedWeights,
		Weight:    orca.WeightConfig{Utilization: []string{"named_metrics.queue", "cpu_utilization"}, Blackout: -1},
		OutOfBand: 10 * time.Second, Ask: evenkeel.AskText,
	}
	if !reflect.DeepEqual(*c.Reports, want) {
		t.Errorf("got %+v, want %+v", *c.Reports, want)
	}
}

func TestReportsWithProblemsSayAllOfThem(t *testing.T) {
	_, _, err := Parse([]byte(`{"policy": "maglev", "reports": {"weights": "reported", "out_of_band": "1ms",
		"weight": {"least": 2, "utilization": ["load"]}, "feedback": {"most": 0.5}}}`))
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{"OutOfBand is 1ms", "Least is 2", `"load"`, "Most is 0.5", "picker.Hash"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
}
