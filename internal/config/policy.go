package config

import (
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/ewma"
	"github.com/evenkeel/evenkeel/picker"
)

// policies are all that a config can name.
func policies() []form[evenkeel.Policy] {
	return []form[evenkeel.Policy]{
		formOf[evenkeel.Policy, picker.Adaptive]("adaptive"),
		formOf[evenkeel.Policy, picker.RoundRobin]("round_robin"),
		formOf[evenkeel.Policy, picker.Random]("random"),
		formOf[evenkeel.Policy, picker.WeightedRoundRobin]("weighted_round_robin"),
		formOf[evenkeel.Policy, picker.WeightedRandom]("weighted_random"),
		formOf[evenkeel.Policy, picker.SmoothWeightedRoundRobin]("smooth_weighted_round_robin"),
		formOf[evenkeel.Policy, picker.EDF]("edf"),
		formOf[evenkeel.Policy]("weighted_least_request",
			optional("active_request_bias", func(p *picker.WeightedLeastRequest) **float64 { return &p.ActiveRequestBias })),
		formOf[evenkeel.Policy]("p2c",
			signalField(func(p *picker.P2C) *picker.Signal { return &p.Signal }),
			integer("choices", func(p *picker.P2C) *int { return &p.Choices })),
		formOf[evenkeel.Policy]("least",
			signalField(func(p *picker.Least) *picker.Signal { return &p.Signal })),
		// By the name that goes with weights from reports; it is written as weighted_round_robin.
		formOf[evenkeel.Policy, picker.WeightedRoundRobin]("weighted"),
		hashForm("maglev", picker.Maglev),
		hashForm("ring_hash", picker.Ring),
		hashForm("rendezvous", picker.Rendezvous),
	}
}

// signals are what a policy that compares can go by. A signal that the caller computes
// (picker.LoadTable, one of their own) has no JSON form.
func signals() []form[picker.Signal] {
	return []form[picker.Signal]{
		formOfConstant[picker.Signal]("in_flight", picker.InFlight),
		formOfConstant[picker.Signal]("latency", picker.Latency),
		formOfConstant[picker.Signal]("peak_hold", picker.PeakHold),
		formOfConstant[picker.Signal]("log_mean", picker.LogMean),
		formOf[picker.Signal, picker.LeastTime]("least_time"),
		formOf[picker.Signal]("peak_ewma",
			enum("form", func(p *picker.PeakEWMA) *ewma.PeakForm { return &p.Form }, peakForms),
			duration("tau", func(p *picker.PeakEWMA) *time.Duration { return &p.Tau }),
			number("alpha", func(p *picker.PeakEWMA) *float64 { return &p.Alpha }),
			boolean("plain", func(p *picker.PeakEWMA) *bool { return &p.Plain })),
	}
}

var peakForms = []named[ewma.PeakForm]{
	{"finagle", ewma.FinagleForm},
	{"linkerd", ewma.LinkerdForm},
	{"alpha", ewma.AlphaForm},
}

func policyField[T any](name string, of func(*T) *evenkeel.Policy) field[T] {
	return union(name, "policy", of, policies)
}

func signalField[T any](of func(*T) *picker.Signal) field[T] {
	return union("signal", "signal", of, signals)
}
