package httpclient

import (
	"io"
	"net/http"
	"runtime"
	"testing"
	"time"
)

// The last request's end, and Shutdown that waits for it, or Close: no connection is left. HTTP/2 takes a moment to
// forget a stream that has ended, and its connection is not idle before.
func TestShutdownLeavesNoConnectionOfTheLastRequest(t *testing.T) {
	for _, over := range agedOver {
		h := func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "begin")
			w.(http.Flusher).Flush()
			if r.URL.Path == "/long" {
				<-r.Context().Done()
			}
			wait(time.Millisecond)
		}
		s := serve(t, 1, h, over.start)
		for i := range 200 {
			tr := &Transport{Resolver: static(s), Base: trustingAll(over.name, s)}
			url := over.url
			if i%2 == 0 {
				url += "long"
			}
			resp, err := (&http.Client{Transport: tr}).Do(request(t, http.MethodGet, url, nil))
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				if i%2 == 1 {
					_, _ = io.Copy(io.Discard, resp.Body)
				}
				resp.Body.Close()
			}()
			if i%4 < 2 {
				if err := tr.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
				continue
			}
			g := onlyGroup(tr)
			for g.pool.InFlight(s[0].addr) > 0 {
				runtime.Gosched()
			}
			tr.Close()
		}
		for end := time.Now().Add(2 * time.Second); s[0].open.Load() > 0 && time.Now().Before(end); {
			wait(time.Millisecond)
		}
		if n := s[0].open.Load(); n > 0 {
			t.Errorf("%s: 2 s after Shutdown %d connections of 200 are open", over.name, n)
			s[0].CloseClientConnections()
		}
	}
}
