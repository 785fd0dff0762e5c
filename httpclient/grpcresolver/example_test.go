package grpcresolver_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/evenkeel/evenkeel/httpclient"
	"github.com/evenkeel/evenkeel/httpclient/grpcresolver"
)

// A resolver that was written for gRPC channels finds the endpoints of an HTTP client.
func Example() {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s%s", r.Host, r.URL.Path)
	}))
	defer s.Close()
	// In place of that for Kubernetes or Consul.
	builder := manual.NewBuilderWithScheme("registry")
	builder.InitialState(resolver.State{Endpoints: []resolver.Endpoint{
		{Addresses: []resolver.Address{{Addr: s.Listener.Addr().String()}}},
	}})

	tr := &httpclient.Transport{Resolver: &grpcresolver.Resolver{
		Builder: builder,
		Target:  "registry:///orders.shop",
	}}
	defer tr.Close()
	resp, err := (&http.Client{Transport: tr}).Get("http://orders.test/v1/orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(string(body), err)
	// Output:
	// orders.test/v1/orders <nil>
}
