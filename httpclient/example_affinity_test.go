package httpclient_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/httpclient"
	"github.com/evenkeel/evenkeel/picker"
)

// Each user is served by one instance, the same for all clients that have the same list.
func Example_affinity() {
	var list httpclient.Static
	for _, name := range []string{"a", "b", "c"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }))
		defer s.Close()
		list = append(list, httpclient.Address{Addr: s.Listener.Addr().String()})
	}
	tr := &httpclient.Transport{
		Resolver: list,
		Config:   evenkeel.Config{Policy: picker.Hash{}, Keys: []evenkeel.Key{{Header: "X-User"}}},
	}
	defer tr.Close()

	for _, user := range []string{"alice", "bob"} {
		instances := map[string]bool{}
		for range 10 {
			req, err := http.NewRequest(http.MethodGet, "http://orders.test/v1/orders", nil)
			if err != nil {
				fmt.Println(err)
				return
			}
			req.Header.Set("X-User", user)
			resp, err := (&http.Client{Transport: tr}).Do(req)
			if err != nil {
				fmt.Println(err)
				return
			}
			name, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil {
				fmt.Println(err)
				return
			}
			instances[string(name)] = true
		}
		fmt.Println(user, "was served by", len(instances), "instance")
	}
	// Output:
	// alice was served by 1 instance
	// bob was served by 1 instance
}
