//go:build unix && !race

package httpclient

import (
	"net/http"
	"syscall"
	"testing"
	"time"
)

// cpuTime returns the processor time that this process has used.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A Transport is to add 300 ns of processor time to a RoundTripper that does nothing, with retries on as they are by
// default; it fails at twice that. They are measured in turns, and the least of several counts.
func TestRoundTripIsCheap(t *testing.T) {
	const n = 10_000
	req := request(t, http.MethodGet, svc, nil)
	stub := leafFunc(func(req *http.Request) (*http.Response, error) { return stubAnswer("", req) })
	for _, p := range policies {
		tr := tenStubs(t, p.policy)
		least := [2]time.Duration{time.Hour, time.Hour}
		for range 21 {
			for i, rt := range []http.RoundTripper{stub, tr} {
				start := cpuTime(t)
				for range n {
					roundTrip(t, rt, req)
				}
				least[i] = min(least[i], cpuTime(t)-start)
			}
		}
		more := (least[1] - least[0]) / n
		t.Logf("%s: %v more than the stub's %v, want at most 300ns", p.name, more, least[0]/n)
		if more > 2*300 {
			t.Errorf("%s: %v more than the stub, want at most 300ns", p.name, more)
		}
	}
}
