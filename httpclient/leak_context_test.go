package httpclient

import (
	"context"
	"net/http"
	"runtime"
	"testing"
)

type answerKey struct{}

// session is what many programs put into a context: state of a request, where they keep its answer too.
type session struct {
	resp *http.Response
	big  []byte
}

// A caller that closes its bodies as it should, and that keeps the answer in something that the request's context leads to,
// must not have them kept for ever.
func TestClosedBodiesAreCollectedThoughTheirContextLeadsToThem(t *testing.T) {
	for _, heals := range []bool{false, true} {
		s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("x")) }, plain)
		tr := &Transport{Resolver: static(s), HealLeaks: heals}
		c := client(t, tr)
		var before, after runtime.MemStats
		fetch(t, c, svc)
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range 50 {
			func() {
				sess := &session{big: make([]byte, 1<<20)}
				_ = sess.big
				req, err := http.NewRequestWithContext(context.WithValue(context.Background(), answerKey{}, sess), "GET", svc, nil)
				if err != nil {
					t.Fatal(err)
				}
				if sess.resp, err = c.Do(req); err != nil {
					t.Fatal(err)
				}
				sess.resp.Body.Close()
			}()
		}
		for range 5 {
			runtime.GC()
		}
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 10<<20 {
			t.Errorf("HealLeaks %v: %d MiB are kept of 50 answers that were closed", heals, grown>>20)
		}
	}
}
