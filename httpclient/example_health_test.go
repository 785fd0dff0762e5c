package httpclient_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/httpclient"
)

// An endpoint that answers its checks with anything but 200 gets no requests, however well it answers those.
func ExampleTransport_healthChecks() {
	start := func(name string, status int) *httptest.Server {
		mux := http.NewServeMux()
		mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Name", name) })
		return httptest.NewServer(mux)
	}
	well, leaving := start("well", http.StatusOK), start("leaving", http.StatusServiceUnavailable)
	defer well.Close()
	defer leaving.Close()

	tr := &httpclient.Transport{
		Resolver: httpclient.Static{{Addr: well.Listener.Addr().String()}, {Addr: leaving.Listener.Addr().String()}},
		Config: evenkeel.Config{Health: &evenkeel.HealthConfig{
			Protocol: evenkeel.CheckHTTP, Path: "/healthz", Interval: time.Second,
		}},
	}
	defer tr.Close()
	client := &http.Client{Transport: tr}
	get := func() string {
		resp, err := client.Get("http://orders.internal/")
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		return resp.Header.Get("Name")
	}

	get() // the first list is used at once; its first checks have just begun
	for failing := false; !failing; runtime.Gosched() {
		for _, e := range tr.Snapshot()[0].Endpoints {
			failing = failing || e.State == evenkeel.Failing
		}
	}
	served := map[string]bool{}
	for range 100 {
		served[get()] = true
	}
	fmt.Println(served)
	fmt.Println(tr.Snapshot()[0].Checks[leaving.Listener.Addr().String()])

	// Output:
	// map[well:true]
	// HTTP 503
}
