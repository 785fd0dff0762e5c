package httpclient

import (
	"io"
	"net/http"
	"testing"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// emptyBody is a body with nothing to read that costs nothing to make.
type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error) { return 0, io.EOF }
func (emptyBody) Close() error             { return nil }

// stubAnswer answers at the cost of one allocation. The length is unknown, so the body
// counts.
func stubAnswer(_ string, req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: emptyBody{}, ContentLength: -1, Request: req}, nil
}

// policies by the name that results have.
var policies = []struct {
	name   string
	policy evenkeel.Policy
}{
	{"default", nil},
	{"p2c_in_flight", picker.P2C{Signal: picker.InFlight}},
	{"round_robin", picker.RoundRobin{}},
}

// tenStubs returns a Transport over ten stubs that has its addresses.
func tenStubs(t testing.TB, p evenkeel.Policy) *Transport {
	list := Static{}
	for i := range 10 {
		list = append(list, Address{Addr: "10.0.0.1" + string(rune('0'+i)) + ":80"})
	}
	tr := stubbed(t, &Transport{Resolver: list, Config: evenkeel.Config{Policy: p}}, stubAnswer)
	roundTrip(t, tr, request(t, http.MethodGet, "http://svc.test/", nil))
	return tr
}

// roundTrip sends req and reads the answer to its end.
func roundTrip(t testing.TB, rt http.RoundTripper, req *http.Request) {
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	var buf [1]byte
	if _, err := resp.Body.Read(buf[:]); err != io.EOF {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// BenchmarkRoundTrip shows what balancing adds to a RoundTripper that does nothing.
func BenchmarkRoundTrip(b *testing.B) {
	run := func(name string, rt http.RoundTripper) {
		req := request(b, http.MethodGet, "http://svc.test/", nil)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				roundTrip(b, rt, req)
			}
		})
	}
	run("policy=none", leafFunc(func(req *http.Request) (*http.Response, error) { return stubAnswer("", req) }))
	for _, p := range policies {
		run("policy="+p.name, tenStubs(b, p.policy))
	}
}

// An answer with a body costs one allocation, the box for the body; everything else on
// the way is by value. Two are the most that it may cost.
func TestRoundTripAllocatesOneBox(t *testing.T) {
	req := request(t, http.MethodGet, "http://svc.test/", nil)
	stub := leafFunc(func(req *http.Request) (*http.Response, error) { return stubAnswer("", req) })
	floor := testing.AllocsPerRun(1000, func() { roundTrip(t, stub, req) })
	for _, p := range policies {
		tr := tenStubs(t, p.policy)
		if n := testing.AllocsPerRun(1000, func() { roundTrip(t, tr, req) }) - floor; n != 1 {
			t.Errorf("%s: %v allocations more than the stub, want 1", p.name, n)
		}
	}
}
