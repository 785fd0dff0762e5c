package httpclient

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// kindsOfVectors say what the file calls an outcome.
var kindsOfVectors = map[string][]evenkeel.Outcome{
	"success": {evenkeel.Success}, "failure": {evenkeel.Failure}, "timeout": {evenkeel.Timeout}, "overload": {evenkeel.Overload},
	"local_failure": {evenkeel.Unreached}, "ignore": {evenkeel.Canceled, evenkeel.Unknown},
}

// outcomeOfRow makes what a row of the vector tells of happen, and returns what it is taken for; ok is false for rows that
// are not of requests over HTTP.
func outcomeOfRow(t *testing.T, row string) (o evenkeel.Outcome, ok bool) {
	t.Helper()
	get := func() *http.Request { return request(t, "GET", svc, nil) }
	switch what, rest, _ := strings.Cut(row, " "); what + " " + strings.ReplaceAll(rest, " ", "_") {
	case "http 503_+_Retry-After":
		resp := answer(get(), 503, "")
		resp.Header.Set("Retry-After", "1")
		return resultOfAnswer(resp).Outcome, true
	case "http 200", "http 404", "http 429", "http 500", "http 501", "http 503":
		status := map[string]int{"200": 200, "404": 404, "429": 429, "500": 500, "501": 501, "503": 503}[rest]
		return resultOfAnswer(answer(get(), status, "")).Outcome, true
	case "err context.Canceled":
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return outcomeOfError(get().WithContext(ctx), context.Canceled), true
	case "err custom_cause_with_ctx_done":
		own := errors.New("my own")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(own)
		return outcomeOfError(get().WithContext(ctx), own), true
	case "err context.DeadlineExceeded":
		ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
		defer cancel()
		return outcomeOfError(get().WithContext(ctx), context.DeadlineExceeded), true
	case "err dial_refused":
		o, _ := outcomeOver(t, "127.0.0.1:1", nil, get())
		return o, true
	case "err tls_handshake":
		s := serve(t, 1, func(http.ResponseWriter, *http.Request) {}, plain)
		o, _ := outcomeOver(t, s[0].addr, &http.Transport{TLSClientConfig: &tls.Config{}, ForceAttemptHTTP2: false},
			request(t, "GET", "https://svc.test/", nil))
		return o, true
	case "err local_concurrency_rejection":
		return rejectedByTheLimit(t), true
	}
	return 0, false
}

// rejectedByTheLimit returns what a request that the Transport's own limit refuses is booked as, which is nothing.
func rejectedByTheLimit(t *testing.T) evenkeel.Outcome {
	t.Helper()
	var sent int
	tr := stubbed(t, &Transport{Resolver: Static{{Addr: "10.0.0.1"}}, Config: evenkeel.Config{Policy: picker.RoundRobin{},
		Limit: evenkeel.LimitConfig{PerEndpoint: 1}}},
		func(_ string, req *http.Request) (*http.Response, error) { sent++; return answer(req, 200, "x"), nil })
	first, err := tr.RoundTrip(request(t, "GET", svc, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Body.Close()
	before := one(t, tr).Endpoints[0]
	for range 20 {
		if _, err := tr.RoundTrip(request(t, "GET", svc, nil)); !errors.Is(err, evenkeel.ErrOverloaded) || !errors.Is(err, ErrUnreached) {
			t.Fatal(err)
		}
	}
	after := one(t, tr).Endpoints[0]
	if sent != 1 || after.Success != before.Success || after.Picks != before.Picks || after.InFlight != before.InFlight || after.Ejection != before.Ejection {
		return evenkeel.Failure
	}
	return evenkeel.Unknown
}

// The rows of requests over HTTP, by status and by error. Those of gRPC are run by package outlier; what is sent again, and
// copies of requests, there are none of yet.
func TestVectorOfOutcomesOverHTTP(t *testing.T) {
	text, err := os.ReadFile("../outlier/testdata/reliability.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []json.RawMessage }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	later := map[string]bool{"err retry budget empty": true, "h2 REFUSED_STREAM": true, "h2 GOAWAY stream id above last": true, "hedge loser cancelled": true}
	ran, grpc, left := 0, 0, 0
	for _, one := range file.Vectors {
		var v struct {
			Area  string
			Table []struct{ Outcome, Kind string }
		}
		if json.Unmarshal(one, &v) != nil || v.Area != "classify" {
			continue
		}
		for _, row := range v.Table {
			got, ok := outcomeOfRow(t, row.Outcome)
			switch {
			case ok:
				ran++
				want, good := kindsOfVectors[row.Kind], false
				for _, o := range want {
					good = good || o == got
				}
				if !good {
					t.Errorf("%s is %v, want %s", row.Outcome, got, row.Kind)
				}
			case strings.HasPrefix(row.Outcome, "grpc "):
				grpc++
			case later[row.Outcome]:
				left++
			default:
				t.Errorf("nobody runs the row %q", row.Outcome)
			}
		}
	}
	if ran != 13 || grpc != 11 || left != 4 {
		t.Errorf("%d rows were run, %d are gRPC's and %d are for later, want 13, 11 and 4 of 28", ran, grpc, left)
	}
}
