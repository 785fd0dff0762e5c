package httpclient

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// net/http sends a request whose HTTP/2 stream was refused to the same endpoint again, at once and then after 1, 2, 4 ... 32 s,
// and tells nobody. So it is one try of ours, one pick, in flight all the time; it is no failure until net/http gives up, and
// a limit of time is what ends it before.
func TestRefusedStreamsAreRepeatedUnseenUntilATryTimeout(t *testing.T) {
	var refused, served atomic.Int64
	refuser := framePeer(t, func(f *frames, fr frame) bool {
		if fr.kind == frameHeaders {
			refused.Add(1)
			f.reset(fr.stream, refusedStream)
		}
		return true
	})
	server := framePeer(t, func(f *frames, fr frame) bool {
		if fr.kind == frameHeaders {
			served.Add(1)
		}
		return serveFrames(f, fr)
	})
	told := &heard{}
	transport := func(retry *RetryConfig) *Transport {
		return &Transport{Resolver: Static{{Addr: refuser}, {Addr: server}}, Base: &http.Transport{Protocols: clearText(true)},
			Config: evenkeel.Config{Policy: picker.RoundRobin{}}, Retry: retry, Observer: told}
	}
	tr := transport(nil)
	defer tr.Close()
	ctx, cancel := context.WithCancel(WithEndpoint(t.Context(), refuser))
	defer cancel()
	done := make(chan error)
	go func() {
		_, err := tr.RoundTrip(request(t, "GET", svc, nil).WithContext(ctx))
		done <- err
	}()
	eventually(t, "it is refused twice", func() bool { return refused.Load() == 2 })
	if e := endpointStats(t, one(t, tr), refuser); e.InFlight != 1 || e.Picks != 1 {
		t.Errorf("%d in flight of %d picks, want one of one", e.InFlight, e.Picks)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || told.kinds() != "attempt done" || told.events[0].Outcome != evenkeel.Canceled {
		t.Errorf("%v; told of %s", err, told.kinds())
	}
	// With a limit for a try it goes elsewhere.
	tr = transport(&RetryConfig{TryTimeout: 200 * time.Millisecond})
	defer tr.Close()
	for range 4 {
		resp, err := tr.RoundTrip(request(t, "GET", svc, nil))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if served.Load() != 4 {
		t.Errorf("%d of 4 served", served.Load())
	}
}
