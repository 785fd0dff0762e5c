package main

import (
	"strings"
	"testing"
	"time"
)

func TestQuantileIsTheNearestRank(t *testing.T) {
	upTo := func(n int) []time.Duration {
		list := make([]time.Duration, n)
		for i := range list {
			list[i] = time.Duration(i + 1)
		}
		return list
	}
	for _, tc := range []struct {
		n    int
		q    float64
		want time.Duration
	}{
		{0, 0.5, 0}, {1, 0, 1}, {1, 0.5, 1}, {1, 0.999, 1}, {2, 0.5, 1}, {3, 0.5, 2}, {4, 0.5, 2},
		{100, 0.99, 99}, {101, 0.99, 100}, {999, 0.999, 999}, {1000, 0.999, 999}, {1000, 1, 1000},
	} {
		if got := quantile(upTo(tc.n), tc.q); got != tc.want {
			t.Errorf("the %v quantile of 1..%d is %d, want %d", tc.q, tc.n, got, tc.want)
		}
	}
}

func testRows() []figures {
	const ms = time.Millisecond
	return []figures{
		{transport: "gRPC", balancer: roundRobin, requests: 12_740, errors: 1611,
			p50: 6123 * time.Microsecond, p99: timeout, p999: timeout, slow: share{1274, 12_740}, broken: share{420, 4200}},
		{transport: "gRPC", balancer: evenkeel, requests: 12_740, errors: 17,
			p50: 6234 * time.Microsecond, p99: 40 * ms, p999: 226 * ms, slow: share{102, 12_740}, broken: share{17, 4200}},
		{transport: "HTTP", balancer: roundRobin, requests: 800, errors: 8,
			p50: 99_960 * time.Microsecond, p99: 500 * ms, p999: 600 * ms, slow: share{80, 800}},
		{transport: "HTTP", balancer: evenkeel, requests: 800,
			p50: 6 * ms, p99: 200 * ms, p999: 300 * ms, slow: share{8, 800}},
	}
}

func TestTableIsThis(t *testing.T) {
	rows := testRows()
	const want = `
gRPC         requests  errors      p50      p99    p99.9  to slow to failing
round robin    12,740   1,611   6.1 ms  2000 ms  2000 ms   10.0 %     10.0 %
Evenkeel       12,740      17   6.2 ms  40.0 ms   226 ms    0.8 %      0.4 %

HTTP         requests  errors      p50      p99    p99.9  to slow to failing
round robin       800       8   100 ms   500 ms   600 ms   10.0 %          -
Evenkeel          800       0   6.0 ms   200 ms   300 ms    1.0 %          -
`
	if got := "\n" + table(rows[:2]...) + "\n" + table(rows[2:]...); got != want {
		t.Errorf("got%s\nwant%s", got, want)
	}
}

func TestSentenceFollowsFromTheFigures(t *testing.T) {
	rows := testRows()
	const good = "With one server of ten 10 times slower and another failing for a third of the time, " +
		"Evenkeel's p99 was at least 50.0 times lower over gRPC and 2.5 times lower over HTTP than round robin's, " +
		"and 0.1 % of its requests failed instead of 12.0 %: " +
		"the slow server got 0.8 % of them instead of 10.0 %, the failing one 0.4 % instead of 10.0 %."
	if got := sentence(rows); got != good {
		t.Errorf("got\n%s\nwant\n%s", got, good)
	}
	rows[0], rows[1] = rows[1], rows[0]
	rows[0].balancer, rows[1].balancer = roundRobin, evenkeel
	for _, want := range []string{"at least 50.0 times higher over gRPC", "11.9 % of its requests failed instead of 0.2 %"} {
		if got := sentence(rows); !strings.Contains(got, want) {
			t.Errorf("with gRPC's rows exchanged there is no %q in\n%s", want, got)
		}
	}
}

func TestAPauseIsTold(t *testing.T) {
	for _, tc := range []struct {
		paused time.Duration
		unsent int
		want   string
	}{
		{50 * time.Millisecond, 0, "while it failed."},
		{1234 * time.Millisecond, 0, "something else: sending paused for 1.2 s in all."},
		{8 * time.Second, 1021, "sending paused for 8.0 s in all, and 1,021 requests were left out."},
	} {
		if got := footnote(tc.paused, tc.unsent); !strings.HasSuffix(got, tc.want) {
			t.Errorf("the footnote is %q, want it to end with %q", got, tc.want)
		}
	}
}

func TestRequestsLeftOutAreInNoFigure(t *testing.T) {
	l := &lane{fleet: &fleet{}}
	for i := range fleetSize {
		l.fleet.add(i)
	}
	l.took = []time.Duration{5, 6, 7, 0, 0, 0, 0}
	if f := l.measured(3); f.requests != 3 || f.p50 != 6 || f.p999 != 7 {
		t.Errorf("%d requests, p50 %d, p99.9 %d, want 3, 6, 7", f.requests, f.p50, f.p999)
	}
}

func TestNumbersAreReadable(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", 12_345: "12,345", 999_999: "999,999", 1_234_567: "1,234,567",
	} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) is %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0.0 ms", 40 * time.Microsecond: "0.0 ms", 9949 * time.Microsecond: "9.9 ms",
		99_940 * time.Microsecond: "99.9 ms", 99_960 * time.Microsecond: "100 ms", 100 * time.Millisecond: "100 ms", time.Second: "1000 ms",
	} {
		if got := millis(d); got != want {
			t.Errorf("millis(%v) is %q, want %q", d, got, want)
		}
	}
}

func TestWrappedTextKeepsItsWordsAndFits(t *testing.T) {
	text := introduction(defaults)
	wrapped := wrap(text)
	if strings.Join(strings.Fields(wrapped), " ") != text {
		t.Errorf("%q became %q", text, wrapped)
	}
	for line := range strings.Lines(wrapped) {
		if len(line) > 79 || line != strings.TrimSpace(line)+"\n" {
			t.Errorf("line %q", line)
		}
	}
}
