package httpclient_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/evenkeel/evenkeel/httpclient"
)

// retry sends a request once more if nothing of it was sent.
type retry struct{ next http.RoundTripper }

func (r retry) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if !errors.Is(err, httpclient.ErrUnreached) || req.Context().Err() != nil {
		return resp, err
	}
	if req.Body != nil && req.Body != http.NoBody {
		if req.GetBody == nil {
			return nil, err
		}
		body, bodyErr := req.GetBody()
		if bodyErr != nil {
			return nil, errors.Join(err, bodyErr)
		}
		req = req.Clone(req.Context())
		req.Body = body
	}
	return r.next.RoundTrip(req) // chosen anew
}

// One of two endpoints is down, and no request fails.
func Example_retry() {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "served")
	}))
	defer s.Close()
	tr := &httpclient.Transport{Resolver: httpclient.Static{
		{Addr: s.Listener.Addr().String()},
		{Addr: "127.0.0.1:1"}, // nobody listens there
	}}
	defer tr.Close()
	client := &http.Client{Transport: retry{tr}}

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
