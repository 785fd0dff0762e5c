package httpclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel/picker"
)

const svc = "http://svc.test/"

// single returns a Transport with one endpoint that answers as f says.
func single(t testing.TB, f func(*http.Request) (*http.Response, error)) *Transport {
	t.Helper()
	return stubbed(t, &Transport{Resolver: Static{{Addr: "10.0.0.1"}}},
		func(_ string, req *http.Request) (*http.Response, error) { return f(req) })
}

// only returns the stats of the only endpoint.
func only(t testing.TB, tr *Transport) (inFlight int64, success float64, latency time.Duration) {
	t.Helper()
	e := endpointStats(t, one(t, tr), "10.0.0.1:80")
	return e.InFlight, e.Success, e.Latency
}

func TestRequestIsInFlightUntilItsBodyEnds(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name    string
		body    io.Reader
		end     func(io.ReadCloser)
		success bool
	}{
		{"end of body", http.NoBody, func(b io.ReadCloser) { _, _ = io.ReadAll(b) }, true},
		{"read error", &failing{broken}, func(b io.ReadCloser) { _, _ = io.ReadAll(b) }, false},
		{"close", &failing{broken}, func(b io.ReadCloser) { b.Close() }, true},
		{"all three", http.NoBody, func(b io.ReadCloser) { _, _ = io.ReadAll(b); b.Close(); b.Close() }, true},
	} {
		tr := single(t, func(req *http.Request) (*http.Response, error) {
			resp := answer(req, 200, "")
			resp.Body, resp.ContentLength = io.NopCloser(c.body), -1
			return resp, nil
		})
		resp, err := tr.RoundTrip(request(t, "GET", svc, nil))
		if err != nil {
			t.Fatal(err)
		}
		if n, _, _ := only(t, tr); n != 1 {
			t.Errorf("%s: %d in flight with the body open, want 1", c.name, n)
		}
		c.end(resp.Body)
		n, success, _ := only(t, tr)
		if n != 0 || (success == 1) != c.success {
			t.Errorf("%s: %d in flight, success %v at the end", c.name, n, success)
		}
	}
}

// failing is a body that cannot be read.
type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func TestAnswerWithoutABodyEndsAtItsHeaders(t *testing.T) {
	private := struct{ io.ReadCloser }{http.NoBody} // HTTP/2 has an empty body of its own
	for _, c := range []struct {
		name   string
		method string
		status int
		length int64
		want   int64
	}{
		{"HEAD", "HEAD", 200, 99, 0},
		{"204", "GET", 204, -1, 0},
		{"304", "GET", 304, -1, 0},
		{"length 0", "GET", 200, 0, 0},
		{"error of length 0", "POST", 500, 0, 0},
		{"unknown length", "GET", 200, -1, 1},
	} {
		tr := single(t, func(req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: c.status, ContentLength: c.length, Body: private}, nil
		})
		resp, err := tr.RoundTrip(request(t, c.method, svc, nil))
		if err != nil {
			t.Fatal(err)
		}
		if n, _, _ := only(t, tr); n != c.want {
			t.Errorf("%s: %d in flight after the headers, want %d", c.name, n, c.want)
		}
		if c.want == 0 && resp.Body != private {
			t.Errorf("%s: the body was replaced", c.name)
		}
		resp.Body.Close()
	}
}

func TestAnnouncedTrailersCountAsABody(t *testing.T) {
	tr := single(t, func(req *http.Request) (*http.Response, error) {
		resp := answer(req, 200, "")
		resp.Trailer = http.Header{"X-Sum": nil}
		return resp, nil
	})
	resp, err := tr.RoundTrip(request(t, "GET", svc, nil))
	if err != nil {
		t.Fatal(err)
	}
	if n, _, _ := only(t, tr); n != 1 {
		t.Errorf("%d in flight, want 1 until the trailers are in", n)
	}
	resp.Body.Close()
}

func TestTrap8RequestEndsOnceWhateverEndsItAtTheSameTime(t *testing.T) {
	for range 200 {
		pr, pw := io.Pipe()
		tr := single(t, func(req *http.Request) (*http.Response, error) {
			resp := answer(req, 200, "")
			resp.Body, resp.ContentLength = pr, -1
			return resp, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := tr.RoundTrip(request(t, "GET", svc, nil).WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for _, f := range []func(){
			func() { _, _ = io.ReadAll(resp.Body) },
			func() { resp.Body.Close() },
			func() { resp.Body.Close() },
			func() { pw.CloseWithError(io.EOF) },
			cancel,
		} {
			wg.Go(f)
		}
		wg.Wait()
		n, success, _ := only(t, tr)
		if n != 0 {
			t.Fatalf("%d in flight, want 0", n)
		}
		if success != 1 {
			t.Fatalf("success is %v: the caller's own Close counted as a failure", success)
		}
		tr.Close()
	}
}

// closeFirst is a body whose Read hangs until Close, which returns only after the
// caller of that Read has its error.
type closeFirst struct{ closed, seen chan struct{} }

func (c closeFirst) Read([]byte) (int, error) {
	<-c.closed
	return 0, errors.New("read on closed body")
}

func (c closeFirst) Close() error {
	close(c.closed)
	<-c.seen
	return nil
}

func TestCloseUnderARunningReadIsNoFailure(t *testing.T) {
	inner := closeFirst{make(chan struct{}), make(chan struct{})}
	tr := single(t, func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, ContentLength: -1, Body: inner}, nil
	})
	resp, err := tr.RoundTrip(request(t, "GET", svc, nil))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = resp.Body.Read(make([]byte, 1))
		close(inner.seen)
	})
	resp.Body.Close()
	wg.Wait()
	if n, success, _ := only(t, tr); n != 0 || success != 1 {
		t.Errorf("in flight %d, success %v, want 0, 1", n, success)
	}
}

func TestLatencyIsTheTimeToHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := single(t, func(req *http.Request) (*http.Response, error) {
			time.Sleep(20 * time.Millisecond)
			return answer(req, 200, "x"), nil
		})
		resp, err := tr.RoundTrip(request(t, "GET", svc, nil))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second) // a slow reader
		_, _ = io.ReadAll(resp.Body)
		if _, _, latency := only(t, tr); latency > 21*time.Millisecond || latency < 10*time.Millisecond {
			t.Errorf("latency is %v, want that of the headers, 20ms, fading for 3 s", latency)
		}
	})
}

func TestFailuresTeachNoLatency(t *testing.T) {
	for _, status := range []int{500, 502, 503, 504, 429} {
		tr := single(t, func(req *http.Request) (*http.Response, error) { return answer(req, status, "x"), nil })
		roundTripAll(t, tr)
		if n, success, latency := only(t, tr); n != 0 || latency != 0 || (success == 1) != (status == 429) {
			t.Errorf("%d: in flight %d, success %v, latency %v", status, n, success, latency)
		}
	}
}

// roundTripAll sends one request and reads the answer.
func roundTripAll(t testing.TB, tr *Transport) {
	t.Helper()
	resp, err := tr.RoundTrip(request(t, "GET", svc, nil))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(resp.Body)
	resp.Body.Close()
}

func TestOverloadAvoidsTheEndpointForItsRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			status   int
			after    string
			min, max time.Duration
			success  bool
		}{
			{429, "7", 6 * time.Second, 8 * time.Second, true},
			{503, "7", 6 * time.Second, 8 * time.Second, true},
			{429, "", 900 * time.Millisecond, 1100 * time.Millisecond, true},
			{429, "999999999999", 27 * time.Second, 33 * time.Second, true}, // trap 18: the pool's bound
			{503, "", 0, 0, false},
			{503, "soon", 0, 0, false},
		} {
			tr := single(t, func(req *http.Request) (*http.Response, error) {
				resp := answer(req, c.status, "")
				if c.after != "" {
					resp.Header.Set("Retry-After", c.after)
				}
				return resp, nil
			})
			roundTripAll(t, tr)
			e := endpointStats(t, one(t, tr), "10.0.0.1:80")
			if e.Avoided < c.min || e.Avoided > c.max || (e.Success == 1) != c.success {
				t.Errorf("%d, Retry-After %q: avoided for %v, success %v", c.status, c.after, e.Avoided, e.Success)
			}
			tr.Close()
		}
	})
}

func TestRetryAfterIsReadInBothFormsAndBounded(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"0", 0, true},
		{"120", 2 * time.Minute, true},
		{" 5 ", 5 * time.Second, true},
		{"300", 300 * time.Second, true},
		{"301", 300 * time.Second, true},
		{"999999999999", 300 * time.Second, true},
		{"99999999999999999999999999", 300 * time.Second, true},
		{"Sun, 01 Mar 2026 12:00:30 GMT", 30 * time.Second, true},
		{"Sun, 01 Mar 2026 11:00:00 GMT", 0, true},
		{"Sun, 01 Mar 2099 12:00:00 GMT", 300 * time.Second, true},
		{"-5", 0, false},
		{"1.5", 0, false},
		{"1e3", 0, false},
		{"soon", 0, false},
		{"", 0, false},
	} {
		d, ok := retryAfter(http.Header{"Retry-After": {c.value}}, now)
		if d != c.want || ok != c.ok {
			t.Errorf("%q: %v, %v, want %v, %v", c.value, d, ok, c.want, c.ok)
		}
	}
	if _, ok := retryAfter(http.Header{}, now); ok {
		t.Error("no header, and there is a hint")
	}
}

func TestBug47RequestCountsFromThePick(t *testing.T) {
	connecting, connected := make(chan struct{}), make(chan struct{})
	tr := single(t, func(req *http.Request) (*http.Response, error) {
		connecting <- struct{}{}
		<-connected
		return answer(req, 204, ""), nil
	})
	var wg sync.WaitGroup
	wg.Go(func() { roundTripAll(t, tr) })
	<-connecting
	if n, _, _ := only(t, tr); n != 1 {
		t.Errorf("%d in flight while connecting, want 1", n)
	}
	close(connected)
	wg.Wait()
}

func TestEventStreamsAndUpgradesAreStreams(t *testing.T) {
	for _, c := range []struct {
		header, value string
		want          picker.Kind
	}{
		{"Accept", "text/event-stream", picker.Stream},
		{"Upgrade", "websocket", picker.Stream},
		{"Accept", "application/json", picker.Unary},
	} {
		req := request(t, "GET", svc, nil)
		req.Header.Set(c.header, c.value)
		if got := describe(req); got.Kind != c.want || !got.Idempotent {
			t.Errorf("%s: %s is %+v", c.header, c.value, got)
		}
	}
	if describe(request(t, "POST", svc, nil)).Idempotent {
		t.Error("POST is idempotent")
	}
}
