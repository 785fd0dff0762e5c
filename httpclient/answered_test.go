package httpclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
)

// answering returns a Transport with one endpoint that answers with this status and
// header, and with body.
func answering(t *testing.T, status int, retryAfter string, body io.Reader) *Transport {
	t.Helper()
	return single(t, func(req *http.Request) (*http.Response, error) {
		resp := answer(req, status, "")
		if retryAfter != "" {
			resp.Header.Set("Retry-After", retryAfter)
		}
		resp.Body, resp.ContentLength = io.NopCloser(body), -1
		return resp, nil
	})
}

// learnt is what an answer teaches.
type learnt struct {
	success bool // nothing failed
	latency bool // there is one
	avoided bool // for the 20 s that it asked for, ±10 %
}

func learntOf(e evenkeel.EndpointStats) learnt {
	return learnt{e.Success == 1, e.Latency > 0, e.Avoided >= 18*time.Second && e.Avoided <= 22*time.Second}
}

func TestAnswerTeachesAtItsHeadersAndNoMoreAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			status     int
			retryAfter string
			want       learnt
		}{
			{200, "", learnt{success: true, latency: true}},
			{404, "", learnt{success: true, latency: true}},
			{500, "", learnt{}},
			{503, "", learnt{}},
			{503, "20", learnt{success: true, avoided: true}},
			{429, "20", learnt{success: true, avoided: true}},
			{999, "", learnt{success: true}}, // says nothing
		} {
			tr := answering(t, c.status, c.retryAfter, http.NoBody)
			resp, err := tr.RoundTrip(request(t, "GET", svc, nil))
			if err != nil {
				t.Fatal(err)
			}
			begun := endpointStats(t, one(t, tr), "10.0.0.1:80")
			if got := learntOf(begun); got != c.want || begun.InFlight != 1 {
				t.Errorf("%d, Retry-After %q, body open: learnt %+v with %d in flight, want %+v and 1",
					c.status, c.retryAfter, got, begun.InFlight, c.want)
			}
			_, _ = io.ReadAll(resp.Body)
			resp.Body.Close()
			ended := endpointStats(t, one(t, tr), "10.0.0.1:80")
			begun.InFlight = 0
			if ended != begun { // the same instant
				t.Errorf("%d, Retry-After %q: the end changed %+v to %+v", c.status, c.retryAfter, begun, ended)
			}
			tr.Close()
		}
	})
}

// A server that promises more of a body than comes fails, however well it began.
func TestHowABodyEndsBadlyIsLearntAfterAGoodBeginningOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		for _, c := range []struct {
			name   string
			status int
			leaves bool
			after  time.Duration
			failed bool // by the end alone
		}{
			{"broken", 200, false, 0, true},
			{"time is up", 200, false, time.Minute, true},
			{"the caller left", 200, true, 0, false},
			{"broken, of an error", 500, false, 0, false},
			{"broken, of a server that is full", 429, false, 0, false},
		} {
			tr := answering(t, c.status, "", &failing{broken})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			resp, err := tr.RoundTrip(request(t, "GET", svc, nil).WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			_, before, _ := only(t, tr)
			if c.leaves {
				cancel()
			}
			time.Sleep(c.after)
			if _, err := io.ReadAll(resp.Body); !errors.Is(err, broken) {
				t.Fatalf("%s: %v", c.name, err)
			}
			n, after, _ := only(t, tr)
			// Without a failure the score can only rise, as time passes.
			if n != 0 || (after < before) != c.failed {
				t.Errorf("%s: %d in flight, success went from %v to %v", c.name, n, before, after)
			}
			cancel()
			tr.Close()
		}
	})
}
