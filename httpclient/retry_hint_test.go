package httpclient

import (
	"net/http"
	"testing"
	"time"
)

// The published vector "pushback": what a client may make of Retry-After, at most 300 s.
func TestVectorPushbackRetryAfter(t *testing.T) {
	const none = -1
	for _, c := range []struct {
		value   string
		seconds time.Duration
	}{
		{"120", 120},
		{" 120", 120},
		{"0", 0},
		{"-5", none},
		{"abc", none},
		{"Wed, 01 Jan 2020 00:00:00 GMT", 0},
	} {
		want := max(c.seconds, 0) * time.Second
		d, ok := retryAfter(http.Header{"Retry-After": {c.value}}, time.Now())
		if d != want || ok != (c.seconds != none) {
			t.Errorf("%q: %v, %v, want %v, %v", c.value, d, ok, want, c.seconds != none)
		}
	}
	if maxRetryAfter != 300*time.Second {
		t.Errorf("at most %v, want 300s", maxRetryAfter)
	}
}
