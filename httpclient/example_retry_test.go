package httpclient_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/evenkeel/evenkeel/httpclient"
)

// One of two endpoints is down, and no request fails. That is the default; Statuses is what is retried on top.
func ExampleTransport_retry() {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "served")
	}))
	defer s.Close()
	tr := &httpclient.Transport{
		Resolver: httpclient.Static{
			{Addr: s.Listener.Addr().String()},
			{Addr: "127.0.0.1:1"}, // nobody listens there
		},
		Retry: &httpclient.RetryConfig{Statuses: []int{502, 503, 504}},
	}
	defer tr.Close()
	client := &http.Client{Transport: tr}

	served := 0
	for range 20 {
		resp, err := client.Get("http://orders.test/")
		if err != nil {
			fmt.Println(err)
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		served++
	}
	fmt.Println(served, "of 20")
	// Output: 20 of 20
}

// A request says where it goes, and sees what becomes of it.
func ExampleWithTrace() {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "served")
	}))
	defer s.Close()
	tr := &httpclient.Transport{Resolver: httpclient.Static{{Addr: s.Listener.Addr().String()}, {Addr: "127.0.0.1:1"}}}
	defer tr.Close()

	req := httptest.NewRequest("GET", "http://orders.test/", nil)
	ctx := httpclient.WithEndpoint(req.Context(), "127.0.0.1:1")
	ctx = httpclient.WithTrace(httpclient.WithoutRetry(ctx), &httpclient.Trace{AttemptDone: func(e httpclient.Event) {
		fmt.Println(e.Endpoint, e.Attempt, e.Outcome, "sent:", e.Sent)
	}})
	_, err := tr.RoundTrip(req.WithContext(ctx))
	fmt.Println(err != nil)
	// Output:
	// 127.0.0.1:1 1 unreached sent: false
	// true
}
