package evenkeel_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// mayBeNegative are the lengths of time for which a negative value has a meaning.
var mayBeNegative = map[string]string{
	"Config.Outlier.Ramp.Window":     "no ramp",
	"Config.Reports.Weight.Blackout": "no blackout",
}

// number is one number of a configuration: set it to something that is wrong for it.
type number struct {
	path string
	name string // that the error must have
	bad  []func()
	good func()
}

// numbersOf finds every float, percentage and length of time in a configuration, at any depth. Pointers are filled.
func numbersOf(v reflect.Value, path string) (list []number) {
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		if !v.Type().Field(i).IsExported() {
			continue
		}
		n := number{path: path + "." + name, name: name}
		was := reflect.New(f.Type()).Elem()
		was.Set(f)
		n.good = func() { f.Set(was) }
		set := func(x any) { n.bad = append(n.bad, func() { f.Set(reflect.ValueOf(x).Convert(f.Type())) }) }
		switch {
		case f.Type() == reflect.TypeFor[outlier.Percent]():
			for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 100.5, -0.5} {
				set(outlier.PercentOf(x))
			}
		case f.Type() == reflect.TypeFor[time.Duration]():
			if mayBeNegative[n.path] == "" {
				set(time.Duration(-1))
				set(time.Duration(math.MinInt64))
			}
		case f.Kind() == reflect.Float64:
			for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				set(x)
			}
		case f.Kind() == reflect.Pointer && f.Type().Elem().Kind() == reflect.Float64:
			for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				n.bad = append(n.bad, func() { f.Set(reflect.ValueOf(&x)) })
			}
		case f.Kind() == reflect.Pointer && f.Type().Elem().Kind() == reflect.Struct:
			f.Set(reflect.New(f.Type().Elem()))
			list = append(list, numbersOf(f.Elem(), n.path)...)
		case f.Kind() == reflect.Struct:
			list = append(list, numbersOf(f, n.path)...)
		}
		if len(n.bad) > 0 {
			list = append(list, n)
		}
	}
	return list
}

func numbersOfConfig(c *evenkeel.Config) []number {
	return numbersOf(reflect.ValueOf(c).Elem(), "Config")
}

// A number that is none, or endless, or below 0 where that means nothing, or beyond 100 %, is refused
// wherever it is, and named.
func TestNumbersThatCannotBeMeantAreRefusedEverywhere(t *testing.T) {
	var c evenkeel.Config
	list := numbersOfConfig(&c)
	for _, n := range list {
		for k, worsen := range n.bad {
			worsen()
			if err := c.Validate(); err == nil || !strings.Contains(err.Error(), n.name) {
				t.Errorf("%s, bad value %d: %v", n.path, k, err)
			}
			n.good()
		}
	}
	if err := c.Validate(); err != nil {
		t.Errorf("with nothing wrong: %v", err)
	}
	if len(list) < 30 {
		t.Errorf("%d numbers were found, want the outlier's, the subset's and more", len(list))
	}
}

// The same of every policy's own numbers.
func TestPoliciesRefuseNumbersThatCannotBeMeant(t *testing.T) {
	tried := 0
	try := func(v reflect.Value, policy func() evenkeel.Policy) {
		for _, n := range numbersOf(v, v.Type().Name()) {
			for k, worsen := range n.bad {
				worsen()
				c := evenkeel.Config{Policy: policy()}
				if err := c.Validate(); err == nil || !strings.Contains(err.Error(), n.name) {
					t.Errorf("%s, bad value %d: %v", n.path, k, err)
				}
				n.good()
				tried++
			}
		}
	}
	var h picker.Hash
	try(reflect.ValueOf(&h).Elem(), func() evenkeel.Policy { return h })
	var w picker.WeightedLeastRequest
	try(reflect.ValueOf(&w).Elem(), func() evenkeel.Policy { return w })
	var p picker.PeakEWMA
	try(reflect.ValueOf(&p).Elem(), func() evenkeel.Policy { return picker.P2C{Signal: p} })
	try(reflect.ValueOf(&p).Elem(), func() evenkeel.Policy { return picker.Least{Signal: p} })
	try(reflect.ValueOf(&p).Elem(), func() evenkeel.Policy { return picker.Hash{Fallback: picker.P2C{Signal: p}} })
	if tried < 20 {
		t.Errorf("%d values were tried", tried)
	}
}

// All that is wrong comes in one error, and the configuration before stays in force.
func TestAllProblemsComeAtOnceAndTheOldConfigurationStays(t *testing.T) {
	good := rotating
	good.Outlier = &outlier.Config{Soft: outlier.SoftConfig{ConsecutiveFailures: 2}}
	good.Subset = &subset.Config{Size: 4, Seed: 1}
	p := newPool(t, good, 9)
	generation := p.Generation()

	bad := evenkeel.Config{Policy: picker.Hash{LoadFactor: math.NaN()}, Keys: []evenkeel.Key{{}}}
	list := numbersOfConfig(&bad)
	names := []string{"LoadFactor", "Keys", "Floor", "Ceiling"}
	for _, n := range list {
		if len(n.bad) == 0 {
			continue // any value has a meaning
		}
		n.bad[0]()
		names = append(names, n.name)
	}
	bad.Limit = evenkeel.LimitConfig{Floor: -1, Ceiling: -1}
	bad.Health.NoTraffic = math.MinInt64 // less than Interval, which is its bound
	before := fmt.Sprintf("%+v", p.StatsAt(origin))
	for _, err := range []error{p.SetConfigAt(origin, bad), p.ReplaceAt(origin, bad, members(2)),
		p.ReplaceAt(origin, good, []evenkeel.Member[int]{{}, {Endpoint: evenkeel.Endpoint{ID: "x", Weight: evenkeel.WeightOf(math.Inf(1))}}})} {
		if err == nil {
			t.Fatal("accepted")
		}
	}
	text := p.SetConfigAt(origin, bad).Error()
	for _, name := range names {
		if !strings.Contains(text, name) {
			t.Errorf("%s is not named in\n%s", name, text)
		}
	}
	if n := strings.Count(text, "\n") + 1; n < len(list) {
		t.Errorf("%d problems for %d numbers:\n%s", n, len(list), text)
	}
	if after := fmt.Sprintf("%+v", p.StatsAt(origin)); after != before || p.Generation() != generation {
		t.Errorf("it was\n%s and is\n%s", before, after)
	}
	for range 8 { // two failures in a row are still enough
		k, err := p.PickAt(origin, evenkeel.Request{})
		if err != nil {
			t.Fatal(err)
		}
		r := evenkeel.Result{Outcome: evenkeel.Success}
		if k.Record().ID() == p.StatsAt(origin).Endpoints[0].ID {
			r.Outcome = evenkeel.Failure
		}
		k.DoneAt(origin, r)
	}
	if s := p.StatsAt(origin); s.Ejected != 1 || len(s.Endpoints) != 4 {
		t.Errorf("by the rules before one of four is ejected now: %+v", s)
	}
}

// blaming are rules by which almost any failure ejects, in each mode.
func blaming() (list []evenkeel.Config) {
	for _, mode := range []outlier.Mode{outlier.Soft, outlier.Envoy, outlier.A50} {
		o := outlier.Config{Mode: mode, Interval: time.Second, MaxEjectionPercent: outlier.PercentOf(100),
			Panic: outlier.Panic{Threshold: outlier.PercentOf(0)}}
		o.Soft = outlier.SoftConfig{ConsecutiveFailures: 1, RequestVolume: 1, MinHosts: 1}
		o.Envoy.Consecutive5xx, o.Envoy.ConsecutiveGateway, o.Envoy.ConsecutiveLocal = 1, 1, 1
		o.Envoy.EnforceConsecutiveGateway = outlier.PercentOf(100)
		o.Envoy.FailurePercentage = outlier.FailurePercentage{Enforce: outlier.PercentOf(100), Threshold: outlier.PercentOf(1), MinHosts: 1, RequestVolume: 1}
		o.A50.FailurePercentage = &outlier.FailurePercentage{Threshold: outlier.PercentOf(1), MinHosts: 1, RequestVolume: 1}
		for _, split := range []bool{false, true} {
			o.Envoy.SplitLocalOrigin = split
			own := o
			list = append(list, evenkeel.Config{Policy: picker.RoundRobin{}, Outlier: &own})
		}
	}
	return list
}

// A caller that left, and a pick that became no request, are nobody's failure by any rules, whatever an answer
// began with, whatever status came with it, and however many there are.
func TestCallersThatLeaveAreNobodysFailure(t *testing.T) {
	for _, c := range blaming() {
		p := newPool(t, c, 5)
		now := origin
		for i := range 3000 {
			now = now.Add(10 * time.Millisecond)
			if i%20 == 0 {
				p.Sweep(now)
			}
			k, err := p.PickAt(now, evenkeel.Request{Kind: picker.Kind(i % 3)})
			if err != nil {
				t.Fatal(err)
			}
			if i%5 == 0 {
				k.AnsweredAt(now, evenkeel.Result{Outcome: evenkeel.Success, Status: picker.HTTPStatus(200)})
			}
			r := evenkeel.Result{Outcome: []evenkeel.Outcome{evenkeel.Canceled, evenkeel.Canceled, evenkeel.Unknown, 99}[i%4]}
			if i%4 == 1 {
				r.Status = []picker.Status{picker.HTTPStatus(503), picker.GRPCStatus(14)}[i/4%2]
			}
			k.DoneAt(now, r)
		}
		s := p.StatsAt(now)
		for _, e := range s.Endpoints {
			if e.Ejection.Epoch != 0 || e.Ejection.Capped != 0 || e.Success < 1 || e.InFlight != 0 {
				t.Errorf("%v: %+v", c.Outlier.Mode, e)
			}
		}
		if s.Limit != 0 {
			t.Errorf("%v: there is a limit of %d", c.Outlier.Mode, s.Limit)
		}
	}
}

// Bug 32 of a pool: what its own limit refuses is in nobody's books, by any rules, and the limit goes when the load has.
func TestBug32RefusalsOfThePoolsLimitAreNobodysFailure(t *testing.T) {
	for _, c := range blaming() {
		c.Outlier.Soft.ConsecutiveFailures = outlier.Off // else the timeouts that make the limit eject
		c.Outlier.Soft.NoRate = true
		c.Outlier.Envoy = outlier.EnvoyConfig{Consecutive5xx: outlier.Off, ConsecutiveLocal: outlier.Off}
		c.Outlier.Interval = time.Hour
		p, open, now := distressed(t, c, 5, 10)
		before := statsByID(p.StatsAt(now))
		refused := 0
		for range 1000 { // for ten seconds
			if _, err := p.PickAt(now, evenkeel.Request{}); errors.Is(err, evenkeel.ErrOverloaded) {
				refused++
			}
		}
		for id, e := range statsByID(p.StatsAt(now)) {
			if e != before[id] {
				t.Errorf("%v: %s was %+v and is %+v", c.Outlier.Mode, id, before[id], e)
			}
		}
		if refused != 1000 {
			t.Errorf("%v: %d of 1000 were refused", c.Outlier.Mode, refused)
		}
		for i := range open {
			open[i].DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
		}
		for range 150 {
			now = now.Add(100 * time.Millisecond)
			p.Sweep(now)
		}
		if s := p.StatsAt(now); s.Limit != 0 || s.Ejected != 0 {
			t.Errorf("%v: limit %d, %d ejected, when all has been well for 15 s", c.Outlier.Mode, s.Limit, s.Ejected)
		}
	}
}

// A probe whose caller left gives its permit back, however it ends: cancelled, as no request at all, after an answer
// began, or by a change of the list meanwhile.
func TestProbesThatComeToNothingGiveTheirPermitBack(t *testing.T) {
	end := map[string]func(p *evenkeel.Pool[int], k *evenkeel.Pick[int], now time.Time){
		"cancelled": func(_ *evenkeel.Pool[int], k *evenkeel.Pick[int], now time.Time) {
			k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Canceled})
		},
		"no request": func(_ *evenkeel.Pool[int], k *evenkeel.Pick[int], now time.Time) { k.DoneAt(now, evenkeel.Result{}) },
		"after an answer began": func(_ *evenkeel.Pool[int], k *evenkeel.Pick[int], now time.Time) {
			k.AnsweredAt(now, evenkeel.Result{Outcome: evenkeel.Success, Status: picker.HTTPStatus(200)})
			k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Canceled})
		},
		"after its first byte": func(_ *evenkeel.Pool[int], k *evenkeel.Pick[int], now time.Time) {
			k.FirstByteAt(now)
			k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Canceled})
		},
		"while the list changes": func(p *evenkeel.Pool[int], k *evenkeel.Pick[int], now time.Time) {
			_ = p.UpdateAt(now, members(1))
			k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Canceled})
			_ = p.UpdateAt(now, members(4))
		},
		"while it is drained": func(p *evenkeel.Pool[int], k *evenkeel.Pick[int], now time.Time) {
			p.Drain("e1")
			k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Canceled})
			p.Resume("e1")
		},
	}
	for name, end := range end {
		c := newTraffic(t, rotating, 4)
		c.bad[1] = true
		c.send(100*time.Millisecond, time.Millisecond)
		now := c.now.Add(2 * time.Second)
		for round := range 10 {
			k := probing(t, c.pool, now)
			if k.Handle() != 1 {
				t.Fatalf("%s: nobody probes in round %d: %+v", name, round, statsByID(c.pool.StatsAt(now))["e1"])
			}
			end(c.pool, &k, now)
		}
		if e := statsByID(c.pool.StatsAt(now))["e1"]; !isOut(e) || e.Ejection.ProbesFailed != 0 || e.InFlight != 0 {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// probing returns the first request of a hundred that goes to e1, or the last one.
func probing(t *testing.T, p *evenkeel.Pool[int], now time.Time) (k evenkeel.Pick[int]) {
	t.Helper()
	for range 100 {
		var err error
		if k, err = p.PickAt(now, evenkeel.Request{Idempotent: true}); err != nil {
			t.Fatal(err)
		}
		if k.Handle() == 1 {
			return k
		}
		k.DoneAt(now, evenkeel.Result{Outcome: evenkeel.Success})
	}
	return k
}
