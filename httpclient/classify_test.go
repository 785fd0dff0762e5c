package httpclient

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
)

// A backend that says that something does not exist, which the service always has, has failed.
func ExampleDefaultOutcome() {
	tr := &Transport{Classify: func(resp *http.Response, err error) evenkeel.Outcome {
		if resp != nil && resp.StatusCode == http.StatusNotFound {
			return evenkeel.Failure
		}
		return DefaultOutcome(resp, err)
	}}
	fmt.Println(tr.Classify(&http.Response{StatusCode: 404}, nil), tr.Classify(&http.Response{StatusCode: 403}, nil),
		tr.Classify(nil, io.ErrUnexpectedEOF))
	// Output: failure success failure
}

// A Classify that always asks for the default is none.
func TestDefaultOutcomeIsThatOfATransportWithoutClassify(t *testing.T) {
	for status := range 700 {
		resp := &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {"3"}}}
		if got, want := DefaultOutcome(resp, nil), (&endpoint{}).result(resp).Outcome; got != want {
			t.Errorf("status %d: %v, want %v", status, got, want)
		}
	}
	for err, want := range map[error]evenkeel.Outcome{
		nil: evenkeel.Unknown, io.EOF: evenkeel.Failure, errors.New("x"): evenkeel.Failure, errTryTimeout: evenkeel.Timeout,
		&unreachedError{io.EOF}: evenkeel.Unreached,
	} {
		got := DefaultOutcome(nil, err)
		if got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
		if err == nil {
			continue
		}
		if plain := outcomeOfError(request(t, "GET", svc, nil), err); plain != got {
			t.Errorf("%v: %v with Classify, %v without", err, got, plain)
		}
	}
}

// What Classify is told of, and says, decides.
func TestClassifyMakesAFailureOfAStatus(t *testing.T) {
	b := serve(t, 1, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, (*httptest.Server).Start)
	tr := &Transport{Resolver: Static(addrs(b[0].Listener.Addr().String())), Classify: func(resp *http.Response, err error) evenkeel.Outcome {
		if resp != nil && resp.StatusCode == http.StatusNotFound {
			return evenkeel.Failure
		}
		return DefaultOutcome(resp, err)
	}}
	t.Cleanup(tr.Close)
	c := &http.Client{Transport: tr, Timeout: 10 * time.Second}
	for range 5 {
		resp, err := c.Get(svc)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if s := one(t, tr).Endpoints[0].Success; s > 0.9 {
		t.Errorf("success %v after five failures", s)
	}
}
