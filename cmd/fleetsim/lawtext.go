package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel/internal/sim"
)

const ms = time.Millisecond

// lawForm is a law by its name.
type lawForm struct {
	name, parameters string
	usual            sim.Law // with a mean of 10 ms
	read             func(p []string) (sim.Law, error)
}

var lawForms = []lawForm{
	{"exponential", "MEAN", sim.Exponential{MeanTime: 10 * ms}, func(p []string) (sim.Law, error) {
		d, err := times1(p, 0)
		return sim.Exponential{MeanTime: d}, err
	}},
	{"fixed", "TIME", sim.Fixed{Value: 10 * ms}, func(p []string) (sim.Law, error) {
		d, err := times1(p, 0)
		return sim.Fixed{Value: d}, err
	}},
	{"uniform", "LOW,HIGH", sim.Uniform{Low: 5 * ms, High: 15 * ms}, func(p []string) (sim.Law, error) {
		low, err1 := times1(p, 0)
		high, err2 := times1(p, 1)
		return sim.Uniform{Low: low, High: high}, errors.Join(err1, err2)
	}},
	{"lognormal", "MEDIAN,SIGMA", toMean(sim.LogNormal{Median: time.Second, Sigma: 1}), func(p []string) (sim.Law, error) {
		median, err1 := times1(p, 0)
		sigma, err2 := float(p[1])
		return sim.LogNormal{Median: median, Sigma: sigma}, errors.Join(err1, err2)
	}},
	{"bimodal", "SHORT,LONG,SHARE", toMean(sim.Bimodal{Short: time.Second, Long: 100 * time.Second, LongShare: 0.01}), func(p []string) (sim.Law, error) {
		short, err1 := times1(p, 0)
		long, err2 := times1(p, 1)
		share, err3 := float(p[2])
		return sim.Bimodal{Short: short, Long: long, LongShare: share}, errors.Join(err1, err2, err3)
	}},
	{"pareto", "LEAST,ALPHA,CAP", toMean(sim.Pareto{Least: time.Second, Alpha: 1.5, Cap: 1000 * time.Second}), func(p []string) (sim.Law, error) {
		least, err1 := times1(p, 0)
		alpha, err2 := float(p[1])
		capped, err3 := times1(p, 2)
		return sim.Pareto{Least: least, Alpha: alpha, Cap: capped}, errors.Join(err1, err2, err3)
	}},
}

func toMean(l sim.Law) sim.Law { return l.Scale(float64(10*ms) / l.Mean()) }

// parseLaw reads a law. The error says what is allowed.
func parseLaw(text string) (sim.Law, error) {
	name, rest, parameters := strings.Cut(text, ":")
	items := strings.Split(rest, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	if name == "quantiles" {
		return checked(quantiles(items))
	}
	for _, f := range lawForms {
		if f.name != name {
			continue
		}
		want := f.name + ":" + f.parameters
		if !parameters {
			return f.usual, nil
		}
		if len(items) != strings.Count(f.parameters, ",")+1 {
			return nil, errors.New(want)
		}
		l, err := f.read(items)
		if err != nil {
			return nil, fmt.Errorf("%s: %s", want, oneLine(err))
		}
		return checked(l, nil)
	}
	return nil, errors.New("a law: " + lawHelp)
}

// checked returns a law whose parameters are in range.
func checked(l sim.Law, err error) (sim.Law, error) {
	if err != nil {
		return nil, err
	}
	if err := l.Validate(); err != nil {
		return nil, fmt.Errorf("other parameters: %s", oneLine(err))
	}
	return l, nil
}

// oneLine joins the lines of an error, without the name of the package that found it.
func oneLine(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	return strings.NewReplacer("sim: ", "", "config: ", "", "picker: ", "", "evenkeel: ", "").Replace(text)
}

func times1(p []string, i int) (time.Duration, error) {
	d, err := time.ParseDuration(p[i])
	if err != nil {
		return 0, fmt.Errorf("%q is no time such as 20ms", p[i])
	}
	return d, nil
}

func float(text string) (float64, error) {
	v, ok := part(text)
	if !ok {
		return 0, fmt.Errorf("%q is no number", text)
	}
	return v, nil
}

func quantiles(items []string) (sim.Law, error) {
	const want = "quantiles:0=TIME,PART=TIME,…,1=TIME"
	var l sim.Quantiles
	for _, item := range items {
		part, at, found := strings.Cut(item, "=")
		u, err := strconv.ParseFloat(part, 64)
		d, errTime := time.ParseDuration(at)
		if !found || err != nil || errTime != nil || math.IsNaN(u) {
			return nil, fmt.Errorf("%s: %q is none", want, item)
		}
		l = append(l, sim.Quantile{Part: u, Time: d})
	}
	return l, nil
}

// lawText describes a law.
func lawText(l sim.Law) string {
	d := func(t time.Duration) string { return latency(float64(t) / 1e6) }
	mean := ", mean " + latency(l.Mean()/1e6)
	switch l := l.(type) {
	case sim.Exponential:
		return "exponential" + mean
	case sim.Fixed:
		return "exactly " + d(l.Value)
	case sim.Uniform:
		return fmt.Sprintf("%s to %s, evenly", d(l.Low), d(l.High))
	case sim.LogNormal:
		return fmt.Sprintf("lognormal, median %s, sigma %s", d(l.Median), number(l.Sigma)) + mean
	case sim.Bimodal:
		return fmt.Sprintf("%s, and %s for %s", d(l.Short), d(l.Long), shortPercent(l.LongShare)) + mean
	case sim.Pareto:
		return fmt.Sprintf("Pareto from %s, exponent %s, up to %s", d(l.Least), number(l.Alpha), d(l.Cap)) + mean
	case sim.Quantiles:
		return fmt.Sprintf("a table of quantiles from %s to %s", d(l[0].Time), d(l[len(l)-1].Time)) + mean
	}
	return "a law" + mean
}
