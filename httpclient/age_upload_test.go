package httpclient

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
)

// endlessBody is a body that goes on until it is closed.
type endlessBody struct{ closed chan struct{} }

func (u *endlessBody) Read(p []byte) (int, error) {
	select {
	case <-u.closed:
		return 0, io.ErrClosedPipe
	default:
		wait(50 * time.Microsecond)
		return len(p), nil
	}
}
func (u *endlessBody) Close() error { close(u.closed); return nil }

// An upload whose connection is cut for its age says so, over TLS too.
func TestUploadThatIsCutForAgeSaysSo(t *testing.T) {
	for _, over := range agedOver {
		s := serve(t, 1, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, over.start)
		for range 10 {
			tr := &Transport{Resolver: static(s), Base: trustingAll(over.name, s), MaxConnAge: time.Hour,
				Config: evenkeel.Config{DrainTimeout: 5 * time.Millisecond}}
			young(t, tr, time.Millisecond)
			c := client(t, tr)
			done := make(chan error)
			go func() {
				resp, err := c.Post(over.url, "", &endlessBody{closed: make(chan struct{})})
				if err == nil {
					resp.Body.Close()
				}
				done <- err
			}()
			var err error
			for ended := false; !ended; {
				select {
				case err = <-done:
					ended = true
				default:
					wait(time.Millisecond)
					onlyOf(tr, func(g *group) { g.sweep(time.Now()) })
				}
			}
			if !errors.Is(err, ErrDrained) {
				t.Errorf("%s: %v, want ErrDrained", over.name, err)
			}
			tr.Close()
		}
	}
}
