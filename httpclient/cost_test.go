package httpclient

import (
	"net/http"
	"testing"

	"github.com/evenkeel/evenkeel/internal/testcost"
)

// A Transport is to add 300 ns of processor time to a RoundTripper that does nothing, with retries on as they are by
// default; it fails at twice that. They are measured in turns, and the least of several counts.
func TestRoundTripIsCheap(t *testing.T) {
	if testcost.Race {
		t.Skip("the race detector slows atomics down, and little else")
	}
	const n = 10_000
	req := request(t, http.MethodGet, svc, nil)
	trips := func(rt http.RoundTripper) func() {
		return func() {
			for range n {
				roundTrip(t, rt, req)
			}
		}
	}
	stub := leafFunc(func(req *http.Request) (*http.Response, error) { return stubAnswer("", req) })
	for _, p := range policies {
		least := testcost.Least(t, 21, trips(stub), trips(tenStubs(t, p.policy)))
		more := (least[1] - least[0]) / n
		t.Logf("%s: %v more than the stub's %v, want at most 300ns", p.name, more, least[0]/n)
		if more > 2*300 {
			t.Errorf("%s: %v more than the stub, want at most 300ns", p.name, more)
		}
	}
}
