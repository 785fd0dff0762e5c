package main

import (
	"strings"
	"testing"
)

// inventedReport is a report of figures that nobody measured, so that no change of a policy
// changes it.
func inventedReport(t *testing.T, args ...string) *report {
	t.Helper()
	s, err := parseFlags(args)
	if err != nil {
		t.Fatal(err)
	}
	p := newPlan(s)
	o := &outcome{requests: 12345}
	for i := range p.lines {
		tally := newTally(p)
		f := float64(i + 1)
		tally.runs = 2
		for _, w := range append([]*span{&tally.whole}, pointers(tally.windows)...) {
			for range 2 {
				w.requests, w.errors = append(w.requests, 12000*f), append(w.errors, 0.0004*(f-1))
				w.p50, w.p99, w.p999 = append(w.p50, 5/f), append(w.p99, 2100/f/f/f), append(w.p999, 3000/f)
				w.goodP99, w.most, w.evenness = append(w.goodP99, 50/f), append(w.most, 2000/f), append(w.evenness, 1+0.1*f)
				shares := make([]float64, len(p.focuses))
				for k := range shares {
					shares[k] = 0.3 / f / f / f
				}
				w.shares = append(w.shares, shares)
			}
		}
		o.tallies = append(o.tallies, tally)
	}
	return newReport(p, o)
}

func pointers(spans []span) []*span {
	out := make([]*span, len(spans))
	for i := range spans {
		out[i] = &spans[i]
	}
	return out
}

func TestTable(t *testing.T) {
	golden(t, "incident.txt", table(inventedReport(t, words("-preset slow-backend -seeds 2")...)))
	golden(t, "overload.txt", table(inventedReport(t, words("-utilisation 1.2 -seeds 2 -bound none -policies p2c,edf -timeout 1s -streams 0.1 -mean 2ms")...)))
	golden(t, "busy.txt", table(inventedReport(t, words("-seeds 2 -endpoints 12 -concurrency 4 -speeds 2x0.5,1x4 -slow 1s-2s,by=3 -hang 1s-,first=2 "+
		"-drain at=5 -cold 10s-20s,by=5,to=1,at=7 -fail 5s-30s,share=0.25 -arrivals bursts -refresh 5s")...)))
}

func TestANoteSaysWhenAnIncidentOverloads(t *testing.T) {
	for line, want := range map[string]string{
		"-fail 1s-2s,last=4":        "while endpoints 5 to 8 fail in 1 ms the load is 1.40",
		"-slow 1s-2s,last=8":        "the load is 7.00",
		"-hang 1s-2s,last=8":        "nobody can serve",
		"-drain 1s-2s,last=8":       "",
		"-drain 1s-2s,last=1":       "",
		"-utilisation 1":            "OVERLOAD: the load is 1.00",
		"-rate 5 -service fixed:0s": "",
	} {
		notes := strings.Join(inventedReport(t, words(line)...).notes(), "\n")
		if !strings.Contains(notes, want) || want == "" && strings.Contains(notes, "OVERLOAD") {
			t.Errorf("%s: %s\nwant %q", line, notes, want)
		}
	}
}

func TestFiguresAreShort(t *testing.T) {
	for _, row := range []struct{ got, want string }{
		{latency(0), "0 ms"}, {latency(0.00123), "1.23 µs"}, {latency(0.0999), "99.9 µs"}, {latency(0.09996), "0.10 ms"}, {latency(9.996), "10.0 ms"},
		{latency(99.96), "100 ms"}, {latency(999.6), "1.00 s"}, {latency(1234567), "1,235 s"},
		{percent(0), "0 %"}, {percent(0.000001), "<0.001 %"}, {percent(0.00012), "0.012 %"}, {percent(0.005), "0.50 %"},
		{percent(0.125), "12.5 %"}, {percent(0.99991), "99.99 %"}, {percent(1), "100 %"},
		{ratio(1), "1.00×"}, {ratio(15.53), "15.5×"}, {ratio(1470), "1,470×"},
		{whole(0), "0"}, {whole(999), "999"}, {whole(1234567), "1,234,567"},
		{joined([]string{"a"}), "a"}, {joined([]string{"a", "b", "c"}), "a, b and c"},
	} {
		if row.got != row.want {
			t.Errorf("%q, want %q", row.got, row.want)
		}
	}
}

func TestFindings(t *testing.T) {
	golden(t, "findings.txt", strings.Join(inventedReport(t, words("-preset fail-fast -seeds 2")...).findings(), "\n")+"\n"+
		strings.Join(inventedReport(t, words("-speeds 3x1/2 -seeds 2 -policies default -bound none")...).findings(), "\n")+"\n")
}
