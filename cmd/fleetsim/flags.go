package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/evenkeel/evenkeel/internal/sim"
)

// errList is what parseFlags returns for -preset list.
var errList = errors.New("list of presets")

// given collects the values of a flag as texts, so that one run tells all that is wrong.
type given struct {
	def   flagDef
	texts []string
}

// Set implements [flag.Value].
func (g *given) Set(text string) error {
	g.texts = append(g.texts, text)
	return nil
}

// String implements [flag.Value].
func (g *given) String() string { return strings.Join(g.texts, " ") }

// IsBoolFlag lets a boolean flag stand alone.
func (g *given) IsBoolFlag() bool { return g.def.boolean }

// parseFlags returns what the arguments say, or every problem that they have. The error
// is [flag.ErrHelp] for -h and errList for -preset list.
func parseFlags(args []string) (*settings, error) {
	r := &reader{values: map[string]value{}}
	for _, g := range flagGroups {
		for _, f := range g.flags {
			r.values[f.name] = value{texts: texts(f.initial)}
		}
	}
	user, err := r.arguments(args)
	if err != nil {
		return nil, err
	}
	if v, ok := user["preset"]; ok && v.texts[0] != "" {
		if v.texts[0] == "list" {
			return nil, errList
		}
		r.values["preset"] = v
		r.usePreset(v.texts[0])
	}
	r.overlay(user)
	s := r.settings()
	return s, errors.Join(r.problems...)
}

func texts(initial string) []string {
	if initial == "" {
		return nil
	}
	return []string{initial}
}

// arguments returns the flags that args set. What follows something that is no flag is
// read all the same.
func (r *reader) arguments(args []string) (map[string]value, error) {
	set := flag.NewFlagSet("fleetsim", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	all := map[string]*given{}
	for _, g := range flagGroups {
		for _, f := range g.flags {
			all[f.name] = &given{def: f}
			set.Var(all[f.name], f.name, "")
		}
	}
	for len(args) > 0 {
		err := set.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		rest := set.Args()
		switch {
		case err != nil:
			// What stopped Parse is behind rest; what follows up to the next flag may be its value.
			r.problems = append(r.problems, fmt.Errorf("fleetsim: %w, want flags that -h lists", err))
			rest = rest[untilFlag(rest):]
		case len(rest) > 0:
			n := max(untilFlag(rest), 1)
			r.problems = append(r.problems, fmt.Errorf("fleetsim: there is an argument %q, want flags alone", strings.Join(rest[:n], " ")))
			rest = rest[n:]
		}
		args = rest
	}
	user := map[string]value{}
	for name, g := range all {
		if g.texts != nil {
			user[name] = value{g.texts, byUser}
		}
	}
	r.misgiven(all)
	return user, nil
}

// misgiven refuses flags that are given twice and mean one thing, of which the first would be
// lost, and those that are nothing, as of a variable that a shell does not know.
func (r *reader) misgiven(all map[string]*given) {
	for _, g := range flagGroups {
		for _, f := range g.flags {
			texts := all[f.name].texts
			if len(texts) > 1 && !f.repeated {
				r.problems = append(r.problems, fmt.Errorf("fleetsim: -%s is %s and %s, want it once", f.name, quotedValue(texts[0]), quotedValue(texts[1])))
			}
			if slices.Contains(texts, "") && (f.initial == "" || f.repeated) {
				r.problems = append(r.problems, fmt.Errorf("fleetsim: -%s is \"\", want a value, as in -%s %s, or not the flag", f.name, f.name, f.arg))
			}
		}
	}
}

// untilFlag returns how many of args come before the next flag.
func untilFlag(args []string) int {
	i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") })
	if i < 0 {
		return len(args)
	}
	return i
}

// usePreset sets the flags of a preset.
func (r *reader) usePreset(name string) {
	i := slices.IndexFunc(presets, func(p preset) bool { return p.name == name })
	if i < 0 {
		names := make([]string, len(presets))
		for k, p := range presets {
			names[k] = p.name
		}
		r.refuse("preset", "list, or one of %s", strings.Join(names, ", "))
		return
	}
	r.preset = &presets[i]
	flags := map[string]value{}
	for _, pair := range r.preset.flags() {
		flags[pair[0]] = value{append(flags[pair[0]].texts, pair[1]), byPreset}
	}
	r.overlay(flags)
}

// overlay puts flags above those that are there. A rate takes the place of a utilisation
// below, and the other way round.
func (r *reader) overlay(flags map[string]value) {
	for _, pair := range [][2]string{{"rate", "utilisation"}, {"utilisation", "rate"}} {
		if _, ok := flags[pair[0]]; ok {
			delete(r.values, pair[1])
		}
	}
	maps.Copy(r.values, flags)
}

// settings reads all flags.
func (r *reader) settings() *settings {
	s := &settings{preset: r.preset, html: r.text("html")}
	s.duration = r.duration("duration", time.Millisecond, 1000*time.Hour)
	stretch := r.stretch(s.duration)
	s.warmUp = r.duration("warmup", 0, 1000*time.Hour)
	if r.from("warmup") != byUser {
		s.warmUp = scaled(s.warmUp, stretch)
	}
	if s.warmUp >= s.duration {
		r.refuse("warmup", "less than -duration, %v", s.duration)
	}
	s.seeds, s.sweepSeeds = r.integer("seeds", 1, 1000), r.integer("sweep-seeds", 0, 1000)
	s.seed = uint64(r.integer("seed", 0, math.MaxInt32))

	s.endpoints = r.integer("endpoints", 1, 10_000)
	s.concurrency = r.integer("concurrency", 0, 100_000)
	if s.sharing = r.boolean("sharing"); s.sharing && s.concurrency == 0 {
		r.refuse("sharing", "false with -concurrency 0, which leaves nothing to share")
	}
	s.speeds = r.speeds("speeds", s.endpoints)
	s.service = r.law("service")
	if r.text("mean") != "" {
		mean := r.duration("mean", time.Nanosecond, 1000*time.Hour)
		if m := s.service.Mean(); m > 0 {
			s.service = s.service.Scale(float64(mean) / m)
		}
	}
	s.clients = r.integer("clients", 1, 10_000)
	s.delay = r.duration("delay", 0, time.Hour)
	s.timeout, s.refresh = r.duration("timeout", 0, 1000*time.Hour), r.duration("refresh", 0, 1000*time.Hour)
	r.load(s)
	for _, kind := range incidentKinds {
		s.incidents = append(s.incidents, r.incidents(kind, s, stretch)...)
	}
	s.policies = r.policies("policies", s.endpoints)
	s.bound = r.bound("bound")
	s.sweeps = r.boolean("sweeps")
	s.step = r.duration("step", 0, 1000*time.Hour)
	r.cost(s)
	r.html(s)
	s.given = r.list()
	if len(r.problems) == 0 {
		sc := s.fleet()
		if err := sc.Validate(); err != nil {
			r.problems = append(r.problems, fmt.Errorf("fleetsim: the flags make no scenario: %w", err))
		}
	}
	return s
}

// stretch returns what the times of the preset are multiplied by, as it has another
// duration than the user wants.
func (r *reader) stretch(d time.Duration) float64 {
	if r.from("duration") != byUser {
		return 1
	}
	below := defaultDuration
	if r.preset != nil {
		below = r.preset.duration()
	}
	return float64(d) / float64(below)
}

func scaled(d time.Duration, f float64) time.Duration {
	if d == forever {
		return d
	}
	return time.Duration(math.Round(float64(d) * f))
}

// list returns all flags with what they are, in the order of -h.
func (r *reader) list() []setting {
	var out []setting
	for _, g := range flagGroups {
		for _, f := range g.flags {
			v := r.values[f.name]
			for _, text := range v.texts {
				out = append(out, setting{f.name, text, v.from})
			}
		}
	}
	return out
}

// law reads a law of durations.
func (r *reader) law(name string) sim.Law {
	l, err := parseLaw(r.text(name))
	if err != nil {
		r.refuse(name, "%s", err)
		return sim.Exponential{MeanTime: 10 * time.Millisecond}
	}
	return l
}
