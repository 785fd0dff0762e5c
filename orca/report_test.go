package orca

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestReportTellsZeroFromAbsent(t *testing.T) {
	r := Report{CPU: 0.5, Present: QPS}
	for f, want := range map[Fields]bool{CPU: true, QPS: true, CPU | QPS: true, EPS: false, CPU | EPS: false, Memory: false, Application: false} {
		if r.Has(f) != want {
			t.Errorf("Has(%b) is %v", f, !want)
		}
	}
	for _, r := range []Report{{CPU: 1}, {EPS: 1}, {Present: Memory}, {Costs: Metrics{{"a", 0}}}} {
		if r.Empty() {
			t.Errorf("%+v is empty", r)
		}
	}
	r.Named.Set("a", 1)
	r.Named.Set("b", 2)
	r.Named.Set("a", 3)
	c := r.Clone()
	r.Memory, r.Application, r.QPS, r.EPS = 1, 1, 1, 1
	r.Utilizations.Set("d", 1)
	r.Costs.Set("e", 1)
	r.Reset()
	if !r.Empty() || cap(r.Named) == 0 {
		t.Errorf("reset to %+v", r)
	}
	if v, ok := c.Named.Get("a"); !ok || v != 3 || len(c.Named) != 2 || c.CPU != 0.5 {
		t.Errorf("the copy is %+v", c)
	}
	if _, ok := c.Named.Get("c"); ok {
		t.Error("a name that is not there")
	}
}

func TestValidateNamesAllProblems(t *testing.T) {
	r := Report{
		CPU: math.NaN(), Memory: -1, Application: math.Inf(1), QPS: math.Inf(-1), EPS: -1e-300,
		Named:        Metrics{{"fine", -1}, {"", 1}, {"\xff", 1}, {"nan", math.NaN()}},
		Utilizations: Metrics{{"a", 1}, {"a", 1}, {"b", -1}},
		Costs:        Metrics{{strings.Repeat("long", 100), math.Inf(1)}, {"fine", -1}},
	}
	err := r.Validate()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 11 {
		t.Fatalf("want 11 problems, have %v", err)
	}
	for _, reason := range []Reason{NotFinite, Negative, BadKey, Duplicate} {
		if !errors.Is(err, reason) {
			t.Errorf("%v is not among them", reason)
		}
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !strings.HasPrefix(line, "orca: ") || len(line) > 200 {
			t.Errorf("error text %q", line)
		}
	}
	if err := r.Check(); !errors.Is(err, NotFinite) {
		t.Errorf("the first is %v", err)
	}
	many := Report{}
	for i := range MaxEntries + 1 {
		many.Named = append(many.Named, Metric{strconv.Itoa(i), 1})
	}
	if err := many.Validate(); !errors.Is(err, TooManyEntries) {
		t.Errorf("%d names: %v", len(many.Named), err)
	}
	many.Named = many.Named[1:]
	if err := many.Validate(); err != nil {
		t.Errorf("%d names: %v", len(many.Named), err)
	}
	for reason := Reason(1); reason < Reasons; reason++ {
		if !strings.HasPrefix(reason.Error(), "orca: ") || strings.Contains(reason.Error(), "reason ") {
			t.Errorf("reason %d is %q", reason, reason.Error())
		}
	}
}

func TestBinaryBounds(t *testing.T) {
	entry := "\x42\x0c\x0a\x01a\x11\x00\x00\x00\x00\x00\x00\xf0\x3f"
	for _, c := range []struct {
		name, s string
		want    Reason
	}{
		{"too long", strings.Repeat(entry, 600), TooLong},
		{"the same name 129 times", strings.Repeat(entry, 129), TooManyEntries},
		{"a length beyond the end", "\x42\x7f\x0a", Malformed},
		{"a huge length", "\x42\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", Malformed},
		{"a length just beyond the end", "\x42\x02\x0a", Malformed},
		{"a varint beyond 64 bits", "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", Malformed},
		{"a varint that is too long", "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", Malformed},
		{"field 0", "\x01\x00\x00\x00\x00\x00\x00\x00\x00", Malformed},
		{"a group", "\x1b\x1c", Malformed},
		{"not UTF-8", "\x42\x0c\x0a\x01\xff\x11\x00\x00\x00\x00\x00\x00\xf0\x3f", Malformed},
		{"no name", "\x42\x09\x11\x00\x00\x00\x00\x00\x00\xf0\x3f", BadKey},
		{"cut", "\x09\x00", Malformed},
	} {
		r := Report{CPU: 3}
		if err := r.UnmarshalString(c.s); !errors.Is(err, c.want) || !r.Empty() {
			t.Errorf("%s: %v, %+v, want %v", c.name, err, r, c.want)
		}
	}
	var r Report
	unknown := "\x18\x96\x01" + "\x55\x01\x02\x03\x04" + "\x52\x01x" + "\x51\x01\x02\x03\x04\x05\x06\x07\x08" + "\x08\x05"
	if err := r.UnmarshalString(unknown + "\x09\x00\x00\x00\x00\x00\x00\xe0\x3f"); err != nil || r.CPU != 0.5 {
		t.Errorf("after unknown fields: %+v, %v", r, err)
	}
	if err := r.UnmarshalString(strings.Repeat(entry, 128)); err != nil || len(r.Named) != 1 || r.Named[0] != (Metric{"a", 1}) {
		t.Errorf("the same name 128 times: %+v, %v", r, err)
	}
}

// FuzzReport reads any bytes as a message, and takes what comes of it as a weight.
func FuzzReport(f *testing.F) {
	r := sampleReport()
	r.Costs.Set("tokens", -1)
	r.Utilizations.Set("disk", 0.5)
	message, _ := r.AppendBinary(nil)
	f.Add(message, 0.5, 100.0)
	f.Add([]byte{}, math.NaN(), -5.0)
	f.Add([]byte("\x42\x0c\x0a\x01a\x11\x00\x00\x00\x00\x00\x00\xf0\x7f\x1b"), 1e-300, 1e300)
	f.Fuzz(func(t *testing.T, message []byte, util, qps float64) {
		var r Report
		if err := r.UnmarshalString(string(message)); err != nil {
			if !r.Empty() {
				t.Fatalf("%v left %+v", err, r)
			}
		} else {
			if err := r.Validate(); err != nil {
				t.Fatalf("accepted: %v", err)
			}
			again, _ := r.AppendBinary(nil)
			var back Report
			if err := back.UnmarshalString(string(again)); err != nil && len(again) <= MaxBytes {
				t.Fatalf("%+v: %v", r, err)
			}
		}
		w := mustWeights(t, WeightConfig{Blackout: -1})
		endpoints := estimatesOf(w, []float64{100, 100, 100}, 0)
		w.Take(endpoints[0], &r, 1)
		w.Take(endpoints[0], &Report{QPS: qps, CPU: util}, 2)
		weights := make([]float64, 3)
		w.Update(weights, endpoints, 3)
		if !(weights[0] >= 0.1 && weights[0] <= 10) || weights[1] != 1 || weights[2] != 1 {
			t.Fatalf("weights %v", weights)
		}
	})
}
