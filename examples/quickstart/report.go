package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// figures is a row of the report.
type figures struct {
	transport, balancer string
	requests, errors    int
	p50, p99, p999      time.Duration // of all requests, failed ones included
	slow, broken        share         // of the requests that arrived, see fleet
}

// measured returns the lane's figures for its first n requests. The lane is at rest.
func (l *lane) measured(n int) figures {
	f := figures{
		transport: l.transport, balancer: l.balancer,
		requests: n,
		errors:   int(l.errors.Load()),
		slow:     l.fleet.slowShare(), broken: l.fleet.brokenShare(),
	}
	sorted := slices.Sorted(slices.Values(l.took[:n]))
	f.p50, f.p99, f.p999 = quantile(sorted, 0.5), quantile(sorted, 0.99), quantile(sorted, 0.999)
	return f
}

// quantile returns the smallest of the sorted values that at least the part q of them
// do not exceed (the nearest rank); 0 if there are none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// report returns the tables and the closing sentence. Lanes come in pairs, as
// allLanes has them.
func report(d *load) string {
	rows := make([]figures, len(d.lanes))
	for i, l := range d.lanes {
		rows[i] = l.measured(len(d.requests) - d.unsent)
	}
	var b strings.Builder
	for i := 0; i+1 < len(rows); i += 2 {
		b.WriteString(table(rows[i], rows[i+1]))
		b.WriteString("\n")
	}
	b.WriteString(wrap(footnote(d.paused, d.unsent)))
	b.WriteString("\n")
	b.WriteString(wrap(sentence(rows)))
	return b.String()
}

// table returns the table of one transport.
func table(rows ...figures) string {
	const format = "%-11s %9s %7s %8s %8s %8s %8s %10s\n"
	var b strings.Builder
	fmt.Fprintf(&b, format, rows[0].transport, "requests", "errors", "p50", "p99", "p99.9", "to slow", "to failing")
	for _, r := range rows {
		fmt.Fprintf(&b, format, r.balancer, thousands(int64(r.requests)), thousands(int64(r.errors)),
			millis(r.p50), millis(r.p99), millis(r.p999), r.slow, r.broken)
	}
	return b.String()
}

// footnote explains the tables, and what they lack because the machine was busy.
func footnote(paused time.Duration, unsent int) string {
	text := "Times are of all requests: failed ones with the time to the failure, those that nobody answered " +
		"with the timeout. Shares are of the requests that arrived; the failing server's, while it failed."
	if paused >= time.Second/10 {
		text += fmt.Sprintf(" The machine was busy with something else: sending paused for %.1f s in all", paused.Seconds())
		if unsent > 0 {
			text += fmt.Sprintf(", and %s requests were left out", thousands(int64(unsent)))
		}
		text += "."
	}
	return text
}

// sentence says what happened. It is true of any figures, good or bad.
func sentence(rows []figures) string {
	var latency []string
	total := map[string]*figures{roundRobin: {}, evenkeel: {}}
	for _, r := range rows {
		t := total[r.balancer]
		t.requests += r.requests
		t.errors += r.errors
		t.slow.add(r.slow)
		t.broken.add(r.broken)
	}
	for i := 0; i+1 < len(rows); i += 2 {
		latency = append(latency, times(rows[i].p99, rows[i+1].p99)+" over "+rows[i].transport)
	}
	rr, ek := total[roundRobin], total[evenkeel]
	return fmt.Sprintf("With one server of ten %d times slower and another failing for a third of the time, "+
		"Evenkeel's p99 was %s than round robin's, and %s of its requests failed instead of %s: "+
		"the slow server got %s of them instead of %s, the failing one %s instead of %s.",
		slowness, strings.Join(latency, " and "), ek.failed(), rr.failed(), ek.slow, rr.slow, ek.broken, rr.broken)
}

func (f *figures) failed() share { return share{int64(f.errors), int64(f.requests)} }

// times compares a latency of Evenkeel's with round robin's. One that is the timeout
// would have been longer if clients had waited.
func times(rr, ek time.Duration) string {
	word, ratio := "lower", float64(rr)/float64(max(ek, 1))
	bound := rr >= timeout
	if ek > rr {
		word, ratio = "higher", float64(ek)/float64(max(rr, 1))
		bound = ek >= timeout
	}
	text := strconv.FormatFloat(ratio, 'f', 1, 64) + " times " + word
	if bound {
		return "at least " + text
	}
	return text
}

// introduction says what is about to happen.
func introduction(s settings) string {
	return fmt.Sprintf("Four fleets of %d servers in this process, each server with a queue before one slot. Every fleet gets the "+
		"same %d requests a second for %g s, each of %s of work on average; clients wait for %g s. One server of each fleet is "+
		"%d times slower, and from %.1f to %.1f s another one fails in %s.", fleetSize, s.rate, s.duration.Seconds(), millis(meanWork),
		timeout.Seconds(), slowness, (s.duration / 3).Seconds(), (2 * s.duration / 3).Seconds(), millis(failsIn))
}

// share is a part of a whole.
type share struct{ part, whole int64 }

func (s *share) add(t share) { s.part, s.whole = s.part+t.part, s.whole+t.whole }

// String returns the share in percent.
func (s share) String() string {
	if s.whole == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*float64(s.part)/float64(s.whole), 'f', 1, 64) + " %"
}

// millis returns d in milliseconds, to three digits or so.
func millis(d time.Duration) string {
	decimals := 1
	if d = d.Round(time.Millisecond / 10); d >= 100*time.Millisecond {
		decimals = 0
	}
	return strconv.FormatFloat(d.Seconds()*1000, 'f', decimals, 64) + " ms"
}

// thousands returns n, which is not negative, with a comma before each three digits.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// wrap breaks text into lines of up to 78 characters.
func wrap(text string) string {
	const width = 78
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+1+len(word) > width:
			b.WriteString("\n")
			column = 0
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	b.WriteString("\n")
	return b.String()
}
