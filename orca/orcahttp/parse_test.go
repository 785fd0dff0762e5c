package orcahttp_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/orca/orcahttp"
)

// reasons maps the words of the vectors to ours.
var reasons = map[string]orca.Reason{
	"unsupported format": orca.UnknownFormat, "duplicate": orca.Duplicate, "bad number": orca.BadNumber,
	"empty map key": orca.BadKey, "bad entry": orca.BadEntry, "unexpected end": orca.BadJSON,
	"cannot unmarshal": orca.NotAnObject, "empty": orca.Empty, "malformed": orca.Malformed,
	"not finite": orca.NotFinite, "more than one": orca.MoreThanOne, "too long": orca.TooLong,
}

// wire is a report as the vectors write it; nil is absent.
type wire struct {
	CPU         *float64           `json:"cpu_utilization"`
	Memory      *float64           `json:"mem_utilization"`
	Application *float64           `json:"application_utilization"`
	QPS         *float64           `json:"rps_fractional"`
	EPS         *float64           `json:"eps"`
	Named       map[string]float64 `json:"named_metrics"`
	Utilization map[string]float64 `json:"utilization"`
	Cost        map[string]float64 `json:"request_cost"`
}

func (v wire) check(t *testing.T, r *orca.Report) {
	t.Helper()
	for _, s := range []struct {
		name  string
		field orca.Fields
		got   float64
		want  *float64
	}{
		{"cpu", orca.CPU, r.CPU, v.CPU}, {"mem", orca.Memory, r.Memory, v.Memory},
		{"application", orca.Application, r.Application, v.Application},
		{"qps", orca.QPS, r.QPS, v.QPS}, {"eps", orca.EPS, r.EPS, v.EPS},
	} {
		switch {
		case s.want == nil && r.Has(s.field):
			t.Errorf("%s is %v, want none", s.name, s.got)
		case s.want != nil && (!r.Has(s.field) || s.got != *s.want):
			t.Errorf("%s is %v (there: %v), want %v", s.name, s.got, r.Has(s.field), *s.want)
		}
	}
	for _, g := range []struct {
		got  orca.Metrics
		want map[string]float64
	}{{r.Named, v.Named}, {r.Utilizations, v.Utilization}, {r.Costs, v.Cost}} {
		got := map[string]float64{}
		for _, m := range g.got {
			got[m.Name] = m.Value
		}
		if len(got) != len(g.got) || !maps.Equal(got, g.want) {
			t.Errorf("names are %v, want %v", g.got, g.want)
		}
	}
}

func headerOf(lines [][2]string) http.Header {
	h := http.Header{}
	for _, l := range lines {
		h.Add(l[0], l[1])
	}
	return h
}

func TestVectorHeaders(t *testing.T) {
	data, err := os.ReadFile("testdata/orca-headers.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct {
			ID, Title, Reason string
			Headers           [][2]string
			Valid             bool
			Report            wire
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, v := range file.Vectors {
		ran++
		t.Run(v.ID, func(t *testing.T) {
			h := headerOf(v.Headers)
			before := h.Clone()
			r := orca.Report{CPU: 7, Named: orca.Metrics{{Name: "old", Value: 1}}}
			found, err := orcahttp.ParseHeader(&r, h)
			if !maps.EqualFunc(h, before, func(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") }) {
				t.Error("the header was changed")
			}
			if !v.Valid {
				if !r.Empty() {
					t.Errorf("an invalid report left %+v", r)
				}
				if v.Reason == "no report" {
					if found || err != nil {
						t.Errorf("found %v, %v, want nothing", found, err)
					}
					return
				}
				if want := reasons[v.Reason]; want == 0 || !found || !errors.Is(err, want) {
					t.Errorf("%s: found %v, %v, want %v", v.Title, found, err, want)
				}
				return
			}
			if !found || err != nil {
				t.Fatalf("%s: found %v, %v", v.Title, found, err)
			}
			v.Report.check(t, &r)
		})
	}
	if want := 32; ran != want {
		t.Errorf("ran %d vectors, want %d", ran, want)
	}
}

func TestParseValueDialects(t *testing.T) {
	half, one := 0.5, 1.0
	for _, c := range []struct {
		value string
		want  wire
		err   orca.Reason
	}{
		{value: "TEXT cpu_utilization:0.5,rps_fractional:1,named_metrics.foo:123,request_cost.a=-1",
			want: wire{CPU: &half, QPS: &one, Named: map[string]float64{"foo": 123}, Cost: map[string]float64{"a": -1}}},
		{value: "TEXT ,,\tcpu_utilization\t=\t+5e-1 ,, ", want: wire{CPU: &half}},
		{value: "TEXT application_utilization=0.5,mem_utilization=1", want: wire{Application: &half, Memory: &one}},
		{value: `JSON {"later":{"a":[1,{"b":null}]},"eps":"1","cpu_utilization":null,"namedMetrics":{"x":"5e-1","y":null},"requestCost":null}`,
			want: wire{EPS: &one, Named: map[string]float64{"x": 0.5}}},
		{value: "JSON {}"},
		{value: "BIN CQAAAAAAAOA/", want: wire{CPU: &half}},
		{value: "", err: orca.UnknownFormat},
		{value: "cpu_utilization=0.3, mem_utilization=0.8", err: orca.UnknownFormat},
		{value: "TEXT\tcpu_utilization=0.3", err: orca.UnknownFormat},
		{value: "BIN", err: orca.Empty},
		{value: "BIN ====", err: orca.BadBase64},
		{value: "BIN _-_-", err: orca.BadBase64},
		{value: "JSON", err: orca.BadJSON},
		{value: "TEXT cpu_utilization=0.7,unsupported_metric=0.8", err: orca.UnknownKey},
		{value: `TEXT cpu_utilization="0.7"`, err: orca.BadNumber},
		{value: "TEXT cpu_utilization=1=2", err: orca.BadNumber},
		{value: "TEXT cpu_utilization=1_0", err: orca.BadNumber},
		{value: "TEXT cpu_utilization=-1", err: orca.Negative},
		{value: "TEXT utilization.a=-1", err: orca.Negative},
		{value: "TEXT named_metrics.\xff=1", err: orca.BadKey},
		{value: "TEXT =1", err: orca.UnknownKey},
		{value: `JSON {"cpu_utilization":-1}`, err: orca.Negative},
		{value: `JSON {"cpuUtilization":1,"cpu_utilization":1}`, err: orca.Duplicate},
		{value: `JSON {"namedMetrics":{"a":1,"a":1}}`, err: orca.Duplicate},
		{value: `JSON {"namedMetrics":{"":1}}`, err: orca.BadKey},
		{value: `JSON {"namedMetrics":{"a":{}}}`, err: orca.NotAnObject},
		{value: `JSON {"namedMetrics":[1]}`, err: orca.NotAnObject},
		{value: `JSON {"cpu_utilization":true}`, err: orca.NotAnObject},
		{value: `JSON {"cpu_utilization":1e999}`, err: orca.BadNumber},
		{value: `JSON {} {}`, err: orca.BadJSON},
		{value: "JSON {\u201ccpu_utilization\u201d: 0.3}", err: orca.BadJSON},
		{value: "JSON null", err: orca.NotAnObject},
		{value: `JSON ` + strings.Repeat("[", 8000), err: orca.NotAnObject},
		{value: `JSON {"a":` + strings.Repeat("[", 8000), err: orca.BadJSON},
		{value: "TEXT " + strings.Repeat("named_metrics.a=1,", 128), err: orca.Duplicate},
		{value: "TEXT " + strings.Repeat("named_metrics.a=1,", 129), err: orca.TooManyEntries},
	} {
		var r orca.Report
		err := orcahttp.ParseValue(&r, c.value)
		name := c.value[:min(len(c.value), 60)]
		switch {
		case c.err != 0:
			if !errors.Is(err, c.err) || !r.Empty() {
				t.Errorf("%q: %v, left %+v, want %v", name, err, r, c.err)
			}
		case err != nil:
			t.Errorf("%q: %v", name, err)
		default:
			c.want.check(t, &r)
		}
	}
}

func TestParseResponsePrefersTheHeader(t *testing.T) {
	text := func(v string) http.Header { return http.Header{orcahttp.Header: {"TEXT cpu_utilization=" + v}} }
	for _, c := range []struct {
		name            string
		header, trailer http.Header
		found           bool
		cpu             float64
		err             orca.Reason
	}{
		{name: "neither"},
		{name: "header alone", header: text("0.1"), found: true, cpu: 0.1},
		{name: "trailer alone", trailer: text("0.2"), found: true, cpu: 0.2},
		{name: "both", header: text("0.1"), trailer: text("0.2"), found: true, cpu: 0.1},
		{name: "bad header", header: text("x"), trailer: text("0.2"), found: true, cpu: 0.2},
		{name: "both bad", header: text("x"), trailer: text("-1"), found: true, err: orca.BadNumber},
		{name: "bad trailer", trailer: text("-1"), found: true, err: orca.Negative},
		{name: "bad header, no trailer", header: text("x"), trailer: http.Header{"A": {"b"}}, found: true, err: orca.BadNumber},
	} {
		r := orca.Report{CPU: 9}
		found, err := orcahttp.ParseResponse(&r, &http.Response{Header: c.header, Trailer: c.trailer})
		if found != c.found || (err != nil) != (c.err != 0) || err != nil && !errors.Is(err, c.err) || r.CPU != c.cpu {
			t.Errorf("%s: found %v, cpu %v, %v", c.name, found, r.CPU, err)
		}
	}
}

func TestAppendHeaderComesBack(t *testing.T) {
	full := orca.Report{
		CPU: 1.5, Memory: 0.25, QPS: 120.5, EPS: 3, Present: orca.Application,
		Named:        orca.Metrics{{Name: "rif", Value: 4}, {Name: "ünï cödé", Value: -1e-300}},
		Utilizations: orca.Metrics{{Name: "disk", Value: 0.5}},
		Costs:        orca.Metrics{{Name: "tokens", Value: 12}},
	}
	for _, r := range []orca.Report{{}, {QPS: 1}, full} {
		for _, f := range []orcahttp.Format{orcahttp.BinaryHeader, orcahttp.Text, orcahttp.JSON, orcahttp.Binary} {
			h := http.Header{orcahttp.Header: {"old"}, orcahttp.HeaderBin: {"old"}, "Date": {"x"}}
			if err := orcahttp.AppendHeader(h, &r, f); err != nil {
				t.Fatal(err)
			}
			var got orca.Report
			if found, err := orcahttp.ParseHeader(&got, h); !found || err != nil || len(h) != 2 {
				t.Fatalf("%d: %v, found %v, %v", f, h, found, err)
			}
			if got.CPU != r.CPU || got.Memory != r.Memory || got.QPS != r.QPS || got.EPS != r.EPS ||
				len(got.Named) != len(r.Named) || len(got.Utilizations) != len(r.Utilizations) || len(got.Costs) != len(r.Costs) {
				t.Errorf("%d: wrote %+v, read %+v", f, r, got)
			}
			for _, m := range r.Named {
				if v, ok := got.Named.Get(m.Name); !ok || v != m.Value {
					t.Errorf("%d: %q is %v, want %v", f, m.Name, v, m.Value)
				}
			}
			if (f == orcahttp.Text || f == orcahttp.JSON) && got.Has(orca.Application) != r.Has(orca.Application) {
				t.Errorf("%d: a zero that is there did not come back", f)
			}
		}
	}
}

func TestAppendHeaderWritesNothingThatNobodyReads(t *testing.T) {
	long := orca.Report{}
	for i := range 100 {
		long.Named.Set(strings.Repeat("x", 100)+strconv.Itoa(i), 1)
	}
	for _, c := range []struct {
		r    orca.Report
		f    orcahttp.Format
		want orca.Reason
	}{
		{orca.Report{CPU: -1}, orcahttp.Text, orca.Negative},
		{orca.Report{Named: orca.Metrics{{Name: "a,b", Value: 1}}}, orcahttp.Text, orca.BadKey},
		{orca.Report{Named: orca.Metrics{{Name: "a\r\nx", Value: 1}}}, orcahttp.Text, orca.BadKey},
		{orca.Report{Named: orca.Metrics{{Name: " a", Value: 1}}}, orcahttp.Text, orca.BadKey},
		{long, orcahttp.Text, orca.TooLong},
		{long, orcahttp.BinaryHeader, orca.TooLong},
	} {
		h := http.Header{"Date": {"x"}}
		if err := orcahttp.AppendHeader(h, &c.r, c.f); !errors.Is(err, c.want) || len(h) != 1 {
			t.Errorf("%d names: %v, %v, want %v", len(c.r.Named), err, h, c.want)
		}
	}
}

// A response without a report is the usual one, and every response is looked at.
func TestParseHeaderAllocatesOnlyNames(t *testing.T) {
	var r orca.Report
	for _, c := range []struct {
		name string
		h    http.Header
		want float64
	}{
		{name: "absent", h: http.Header{"Date": {"x"}, "Content-Type": {"y"}}, want: 0},
		{name: "TEXT", h: textHeader(), want: 0},
		// The names.
		{name: "BIN", h: binHeader(), want: 1},
	} {
		orcahttp.ParseHeader(&r, c.h)
		if got := testing.AllocsPerRun(100, func() { orcahttp.ParseHeader(&r, c.h) }); got > c.want {
			t.Errorf("%s: %v allocations, want %v", c.name, got, c.want)
		}
	}
}

func textHeader() http.Header {
	return http.Header{"Date": {"x"}, orcahttp.Header: {"TEXT cpu_utilization=0.31, rps_fractional=1200.5, eps=2, named_metrics.rif=4, named_metrics.latency_us=812.5"}}
}

func binHeader() http.Header {
	h := http.Header{"Date": {"x"}}
	r := orca.Report{CPU: 0.31, QPS: 1200.5, EPS: 2, Named: orca.Metrics{{Name: "rif", Value: 4}, {Name: "latency_us", Value: 812.5}}}
	if err := orcahttp.AppendHeader(h, &r, orcahttp.BinaryHeader); err != nil {
		panic(err)
	}
	return h
}

func FuzzParseHeader(f *testing.F) {
	for _, c := range []struct{ text, bin string }{
		{"TEXT cpu_utilization=0.3, named_metrics.a:-1e3,,", ""}, {`JSON {"cpuUtilization":"0.7","namedMetrics":{"a":1}}`, ""},
		{"BIN CZqZmZmZmbk/MQAAAAAAAABAQg4KA2ZvbxGamZmZmZm5P0IOCgNiYXIRmpmZmZmZyT8=", ""},
		{"", "CQAAAAAAAOA/MQAAAAAAAFlAOQAAAAAAAABAQg4KA3JpZhEAAAAAAAAQQA"},
		{"TEXT cpu_utilization=nan", ""}, {"JSON [1]", "CQEAAAAAAPh/"},
	} {
		f.Add(c.text, c.bin)
	}
	f.Fuzz(func(t *testing.T, text, bin string) {
		h := http.Header{}
		if text != "" {
			h[orcahttp.Header] = []string{text}
		}
		if bin != "" {
			h[orcahttp.HeaderBin] = []string{bin}
		}
		var r orca.Report
		found, err := orcahttp.ParseHeader(&r, h)
		if found != (len(h) > 0) || !found && err != nil || err != nil && !r.Empty() {
			t.Fatalf("found %v, %v, %+v", found, err, r)
		}
		if err := r.Validate(); err != nil {
			t.Fatalf("accepted: %v", err)
		}
		for _, format := range []orcahttp.Format{orcahttp.BinaryHeader, orcahttp.Text, orcahttp.JSON, orcahttp.Binary} {
			again := http.Header{}
			if err := orcahttp.AppendHeader(again, &r, format); err != nil {
				continue // names that text cannot have, numbers that are longer
			}
			var back orca.Report
			if _, err := orcahttp.ParseHeader(&back, again); err != nil || back.CPU != r.CPU || len(back.Named) != len(r.Named) {
				t.Fatalf("%v became %v, %v", r, back, err)
			}
		}
	})
}

func BenchmarkParseHeader(b *testing.B) {
	json := http.Header{"Date": {"x"}, orcahttp.Header: {`JSON {"cpu_utilization":0.31,"rps_fractional":1200.5,"eps":2,"named_metrics":{"rif":4}}`}}
	for _, c := range []struct {
		name string
		h    http.Header
	}{
		{"absent", http.Header{"Date": {"x"}, "Content-Type": {"y"}, "Content-Length": {"2"}}},
		{"absent-of-12", http.Header{"A": nil, "B": nil, "C": nil, "D": nil, "E": nil, "F": nil, "G": nil, "H": nil, "I": nil, "J": nil, "K": nil, "L": nil}},
		{"TEXT", textHeader()}, {"BIN", binHeader()}, {"JSON", json},
	} {
		b.Run("form="+c.name, func(b *testing.B) {
			var r orca.Report
			b.ReportAllocs()
			for b.Loop() {
				orcahttp.ParseHeader(&r, c.h)
			}
		})
	}
}
