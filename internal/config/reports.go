package config

import (
	"encoding/json"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/orca"
)

// weightSources are the names of where weights come from; "listed" is the zero value.
var weightSources = []named[evenkeel.WeightSource]{
	{evenkeel.ListedWeights.String(), evenkeel.ListedWeights},
	{evenkeel.ReportedWeights.String(), evenkeel.ReportedWeights},
	{evenkeel.FeedbackWeights.String(), evenkeel.FeedbackWeights},
}

var reportFormats = []named[evenkeel.ReportFormat]{
	{"text", evenkeel.AskText},
	{"json", evenkeel.AskJSON},
}

// reportsFields are the members of the object "reports".
var reportsFields = []field[evenkeel.ReportsConfig]{
	enum("weights", func(c *evenkeel.ReportsConfig) *evenkeel.WeightSource { return &c.Weights }, weightSources),
	part("weight", func(c *evenkeel.ReportsConfig) *orca.WeightConfig { return &c.Weight }, weightFields),
	part("feedback", func(c *evenkeel.ReportsConfig) *orca.FeedbackConfig { return &c.Feedback }, feedbackFields),
	duration("out_of_band", func(c *evenkeel.ReportsConfig) *time.Duration { return &c.OutOfBand }),
	enum("ask", func(c *evenkeel.ReportsConfig) *evenkeel.ReportFormat { return &c.Ask }, reportFormats),
}

var weightFields = []field[orca.WeightConfig]{
	texts("utilization", func(c *orca.WeightConfig) *[]string { return &c.Utilization }),
	factor("error_penalty", func(c *orca.WeightConfig) *float64 { return &c.ErrorPenalty }),
	span("blackout", func(c *orca.WeightConfig) *time.Duration { return &c.Blackout }),
	span("expiry", func(c *orca.WeightConfig) *time.Duration { return &c.Expiry }),
	span("period", func(c *orca.WeightConfig) *time.Duration { return &c.Period }),
	factor("least", func(c *orca.WeightConfig) *float64 { return &c.Least }),
	factor("most", func(c *orca.WeightConfig) *float64 { return &c.Most }),
	factor("hysteresis", func(c *orca.WeightConfig) *float64 { return &c.Hysteresis }),
	boolean("mean_for_unknown", func(c *orca.WeightConfig) *bool { return &c.MeanForUnknown }),
}

var feedbackFields = []field[orca.FeedbackConfig]{
	span("smoothing", func(c *orca.FeedbackConfig) *time.Duration { return &c.Smoothing }),
	duration("delay", func(c *orca.FeedbackConfig) *time.Duration { return &c.Delay }),
	factor("least", func(c *orca.FeedbackConfig) *float64 { return &c.Least }),
	factor("most", func(c *orca.FeedbackConfig) *float64 { return &c.Most }),
}

// texts is a field with a list of strings, absent where it is empty.
func texts[T any](name string, of func(*T) *[]string) field[T] {
	return field[T]{
		name: name,
		read: func(d *decoder, at string, raw json.RawMessage, into *T) {
			var list []string
			if json.Unmarshal(raw, &list) != nil {
				d.wrong(at, raw, "a list of strings")
				return
			}
			*of(into) = list
		},
		write: func(from *T) (any, error) {
			if list := *of(from); list != nil {
				return list, nil
			}
			return nil, nil
		},
	}
}
