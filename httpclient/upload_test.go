package httpclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// source is a request's body that the test writes, and that knows whether net/http has done with it.
type source struct {
	*io.PipeReader
	closed atomic.Bool
}

func (s *source) Close() error {
	s.closed.Store(true)
	return s.PipeReader.Close()
}

// begun sends a POST whose body has only begun, and returns its answer, which came early.
func begun(t *testing.T, rt http.RoundTripper, url string) (*http.Response, *source, *io.PipeWriter) {
	t.Helper()
	r, w := io.Pipe()
	s := &source{PipeReader: r}
	go func() { _, _ = io.WriteString(w, "begin") }()
	resp, err := rt.RoundTrip(request(t, http.MethodPost, url, s))
	if err != nil {
		t.Fatal(err)
	}
	return resp, s, w
}

// A peer of HTTP/2 may end its answer first and go on reading.
func TestTrap23UploadThatOutlivesItsHTTP2AnswerIsInFlightUntilItEnds(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Hour} { // of each try; it must not end the upload either
		var got atomic.Int64
		ended := make(chan struct{}, 1)
		addr := framePeer(t, func(f *frames, fr frame) bool {
			switch fr.kind {
			case frameHeaders:
				f.write(frameHeaders, endHeaders|endStream, fr.stream, status200...)
			case frameData:
				got.Add(int64(len(fr.payload)))
				if fr.flags&endStream != 0 {
					ended <- struct{}{}
				}
			case frameReset:
				t.Error("the upload was cut off")
			}
			return true
		})
		tr := &Transport{Resolver: Static{{Addr: addr}}, Base: baseFor("HTTP/2"), Retry: &RetryConfig{TryTimeout: limit}}
		client(t, tr)
		resp, body, w := begun(t, tr, svc)
		if text, err := io.ReadAll(resp.Body); len(text) > 0 || err != nil {
			t.Errorf("%q, %v", text, err)
		}
		for range 10 {
			if _, err := io.WriteString(w, "more"); err != nil {
				t.Fatal(err)
			}
			if n := inFlight(tr); n != 1 {
				t.Fatalf("%d in flight during the upload, want 1", n)
			}
		}
		if body.closed.Load() {
			t.Error("the upload ended with the answer")
		}
		_ = w.Close()
		<-ended
		eventually(t, "it is over", func() bool { return inFlight(tr) == 0 })
		if e := one(t, tr).Endpoints[0]; got.Load() != 45 || e.Success != 1 || e.Picks != 1 {
			t.Errorf("%d bytes came, success %v, %d requests", got.Load(), e.Success, e.Picks)
		}
		resp.Body.Close()
		if n := inFlight(tr); n != 0 {
			t.Errorf("%d in flight after Close", n)
		}
	}
}

// Over HTTP/1.1 net/http gives an upload 50 ms after the answer's end, and then closes the connection.
func TestTrap23UploadThatOutlivesItsHTTP1AnswerIsInFlightUntilItEnds(t *testing.T) {
	early := func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Content-Length", "2")
		_, _ = io.WriteString(w, "ok")
		w.(http.Flusher).Flush()
		_, _ = io.Copy(io.Discard, r.Body)
	}
	for i, over := range agedOver[:2] {
		s := serve(t, 1, early, agedOver[i].start)
		tr := &Transport{Resolver: static(s), Base: s[0].trusting()}
		client(t, tr)
		resp, body, w := begun(t, tr, over.url)
		if text, err := io.ReadAll(resp.Body); string(text) != "ok" || err != nil {
			t.Errorf("%s: %q, %v", over.name, text, err)
		}
		resp.Body.Close()
		n := inFlight(tr)
		if during := !body.closed.Load(); during && n != 1 {
			t.Errorf("%s: %d in flight during the upload, want 1", over.name, n)
		}
		eventually(t, "net/http has had enough", func() bool {
			_, err := io.WriteString(w, "more")
			if n := inFlight(tr); err == nil && n != 1 && !body.closed.Load() {
				t.Errorf("%s: %d in flight during the upload, want 1", over.name, n)
			}
			return err != nil
		})
		eventually(t, "it is over", func() bool { return inFlight(tr) == 0 })
		if e := one(t, tr).Endpoints[0]; e.Success != 1 {
			t.Errorf("%s: success %v after a good answer", over.name, e.Success)
		}
	}
}

// An answer that has a long body, or comes without one, while the request's is on its way.
func TestTrap23RequestIsInFlightUntilBothBodiesHaveEnded(t *testing.T) {
	for _, over := range agedOver {
		release, read := make(chan struct{}), make(chan struct{}, 2)
		s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			if r.URL.Path == "/none" {
				w.WriteHeader(http.StatusNoContent)
			} else {
				_, _ = io.WriteString(w, "begin")
			}
			w.(http.Flusher).Flush()
			_, _ = io.Copy(io.Discard, r.Body)
			read <- struct{}{}
			if r.URL.Path != "/none" {
				<-release
			}
		}, over.start)
		tr := &Transport{Resolver: static(s), Base: trustingAll(over.name, s)}
		client(t, tr)

		resp, body, w := begun(t, tr, over.url)
		_ = w.Close()
		<-read
		if n := inFlight(tr); n != 1 {
			t.Errorf("%s: %d in flight with an answer that goes on, want 1", over.name, n)
		}
		close(release)
		if text, err := io.ReadAll(resp.Body); string(text) != "begin" || err != nil || inFlight(tr) != 0 {
			t.Errorf("%s: %q, %v, %d in flight", over.name, text, err, inFlight(tr))
		}

		resp, body, w = begun(t, tr, over.url+"none")
		n := inFlight(tr)
		if during := !body.closed.Load(); resp.StatusCode != http.StatusNoContent || during && n != 1 {
			t.Errorf("%s: %s, %d in flight during the upload, want 1", over.name, resp.Status, n)
		}
		eventually(t, "it is over", func() bool {
			_, err := io.WriteString(w, "more")
			_ = w.Close()
			return err != nil && body.closed.Load() && inFlight(tr) == 0
		})
		resp.Body.Close()
		if e := one(t, tr).Endpoints[0]; e.Success != 1 || e.Picks != 2 {
			t.Errorf("%s: success %v, %d requests", over.name, e.Success, e.Picks)
		}
	}
}

// What ends the upload, and how often, does not matter; and what net/http has got twice has to end twice.
func TestTrap23UploadEndsOnce(t *testing.T) {
	broken := errors.New("disk")
	for _, c := range []struct {
		name string
		body io.Reader
		end  func(req *http.Request)
	}{
		{"closed", strings.NewReader("x"), func(req *http.Request) { req.Body.Close(); req.Body.Close() }},
		{"failed", iotest.ErrReader(broken), func(req *http.Request) { _, _ = io.ReadAll(req.Body); req.Body.Close() }},
		{"sent twice", strings.NewReader("x"), func(req *http.Request) {
			again, err := req.GetBody()
			if err != nil {
				t.Error(err)
				return
			}
			req.Body.Close()
			if req.Body.Close(); req.Context().Err() != nil {
				t.Error("it is over before the second body is")
			}
			again.Close()
		}},
	} {
		var sent *http.Request
		tr := single(t, func(req *http.Request) (*http.Response, error) {
			sent = req
			return answer(req, 200, ""), nil
		})
		tr.Retry = &RetryConfig{TryTimeout: time.Hour}
		req := request(t, "POST", svc, io.MultiReader(c.body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(c.body), nil }
		if _, err := tr.RoundTrip(req); err != nil {
			t.Fatal(err)
		}
		if n := inFlight(tr); n != 1 || sent.Context().Err() != nil {
			t.Errorf("%s: %d in flight during the upload, %v", c.name, n, sent.Context().Err())
		}
		c.end(sent)
		if e := one(t, tr).Endpoints[0]; e.InFlight != 0 || e.Success != 1 || e.Picks != 1 || sent.Context().Err() == nil {
			t.Errorf("%s: in flight %d, success %v, picks %d, context %v", c.name, e.InFlight, e.Success, e.Picks, sent.Context().Err())
		}
	}
}

// What is learnt of an answer that comes early is not its upload's doing.
func TestTrap23LatencyIsTheTimeToHeadersWhateverTheUploadTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := single(t, func(req *http.Request) (*http.Response, error) {
			time.Sleep(20 * time.Millisecond)
			time.AfterFunc(3*time.Second, func() { req.Body.Close() })
			return answer(req, 204, ""), nil
		})
		if _, err := tr.RoundTrip(request(t, "POST", svc, io.MultiReader(strings.NewReader("x")))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		if n, _, latency := only(t, tr); n != 0 || latency > 21*time.Millisecond || latency < 10*time.Millisecond {
			t.Errorf("in flight %d, latency %v, want 0 and that of the headers, 20ms", n, latency)
		}
	})
}

// Shutdown waits for uploads, an endpoint that leaves does, and nobody waits longer than allowed.
func TestUploadIsWaitedFor(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, 2, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNoContent)
		w.(http.Flusher).Flush()
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
	}, unencryptedHTTP2)
	r := &script{first: addrs(s[0].addr), started: make(chan struct{}, 1)}
	tr := &Transport{Resolver: r, Base: baseFor("HTTP/2"), Config: evenkeel.Config{Policy: picker.RoundRobin{}}}
	client(t, tr)
	_, body, w := begun(t, tr, svc)
	<-r.started
	if err := r.sink().Update(addrs(s[1].addr)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := tr.Shutdown(ctx); err != context.DeadlineExceeded {
		t.Errorf("%v, want it to wait for the upload", err)
	}
	if _, err := io.WriteString(w, "more"); err != nil || body.closed.Load() {
		t.Errorf("%v: what is open goes on", err)
	}
	_ = w.Close()
	close(release)
	eventually(t, "its connection is closed", func() bool { return s[0].open.Load() == 0 })
}
