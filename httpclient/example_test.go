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

// Three instances of a service share the requests for its name.
func Example() {
	var list httpclient.Static
	for _, name := range []string{"a", "b", "c"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, "%s%s, served by %s", r.Host, r.URL.Path, name)
		}))
		defer s.Close()
		list = append(list, httpclient.Address{Addr: s.Listener.Addr().String()})
	}

	tr := &httpclient.Transport{
		Resolver: list, // leave it out to use the addresses that DNS has for the name
		Config:   evenkeel.Config{Policy: picker.RoundRobin{}},
	}
	defer tr.Close()
	client := &http.Client{Transport: tr}

	served := map[string]int{}
	for range 9 {
		resp, err := client.Get("http://orders.test/v1/orders")
		if err != nil {
			fmt.Println(err)
			return
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			fmt.Println(err)
			return
		}
		served[string(body)]++
	}
	for _, name := range []string{"a", "b", "c"} {
		answer := "orders.test/v1/orders, served by " + name
		fmt.Printf("%s: %d times\n", answer, served[answer])
	}
	// Output:
	// orders.test/v1/orders, served by a: 3 times
	// orders.test/v1/orders, served by b: 3 times
	// orders.test/v1/orders, served by c: 3 times
}
