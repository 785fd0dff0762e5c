package httpclient

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever a server says, the wait is neither negative nor longer than the bound, and a header is valid or not whatever
// stands around it.
func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"", "0", "120", "-5", "+5", "999999999999999999999", " 7 ", "Wed, 01 Jan 2020 00:00:00 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "1.5", "1e9", "soon"} {
		f.Add(s)
	}
	now := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		d, ok := retryAfter(http.Header{"Retry-After": {s}}, now)
		if d < 0 || d > maxRetryAfter || !ok && d != 0 {
			t.Errorf("%q: %v, %v", s, d, ok)
		}
		if d2, ok2 := retryAfter(http.Header{"Retry-After": {" " + s + " ", "9"}}, now); d2 != d || ok2 != ok {
			t.Errorf("%q: %v, %v, and with spaces %v, %v", s, d, ok, d2, ok2)
		}
	})
}

// The oracle of the quantiles is the sorted list.
func TestPaceIsTheQuantileOfTheAnswersWithinAnEighth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		start := time.Now()
		p.sweep(start, 0.95)
		for i := range 100 {
			p.add(time.Duration(i+1)*time.Millisecond, i%5 == 0)
		}
		p.sweep(start.Add(time.Second), 0.95)
		for _, c := range []struct {
			got  int64
			want time.Duration
		}{{p.median.Load(), 50 * time.Millisecond}, {p.backup.Load(), 95 * time.Millisecond}} {
			if got := time.Duration(c.got); got < c.want || got > c.want*9/8+1 {
				t.Errorf("%v, want %v to an eighth more", got, c.want)
			}
		}
		if p.onHeavy.Load() {
			t.Error("a fifth of heavy answers is heavy")
		}
		// They are forgotten after two windows.
		for i := range 3 {
			p.sweep(start.Add(time.Duration(i+1)*paceWindowTime), 0.95)
		}
		if p.median.Load() != 0 {
			t.Errorf("%v is remembered", time.Duration(p.median.Load()))
		}
	})
	for i := range paceBuckets - 1 {
		if edge := paceEdge(i); paceBucket(edge-1) != i || paceBucket(edge) != i+1 {
			t.Fatalf("bucket %d ends at %v: %d, %d", i, edge, paceBucket(edge-1), paceBucket(edge))
		}
	}
	for _, d := range []time.Duration{-1, 0, 1, 1 << 62} {
		if b := paceBucket(d); b < 0 || b >= paceBuckets {
			t.Errorf("%v is in bucket %d", d, b)
		}
	}
}
