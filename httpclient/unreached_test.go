package httpclient

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
)

func TestErrorsSayWhetherAnythingWasSent(t *testing.T) {
	silent := peer(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	hangsUp := peer(t, func(conn net.Conn) { readRequest(conn) })
	untrusted := serve(t, 1, hello, withTLS)[0].addr
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name      string
		tr        *Transport
		url       string
		unreached bool
		timeout   bool
	}{
		{"refused", &Transport{Resolver: Static{{Addr: "127.0.0.1:1"}}}, svc, true, false},
		{"no dial in time", &Transport{Resolver: Static{{Addr: silent}}, Base: &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
			}}}, svc, true, true},
		{"certificate", &Transport{Resolver: Static{{Addr: untrusted}}}, "https://svc.test/", true, false},
		{"no handshake in time", &Transport{Resolver: Static{{Addr: silent}}, Base: &http.Transport{
			TLSHandshakeTimeout: time.Millisecond}}, "https://svc.test/", true, true},
		{"no endpoints", &Transport{Resolver: &script{first: []Address{}}}, svc, true, false},
		{"no such host", &Transport{Resolver: failingResolver{}}, svc, true, false},
		{"no answer", &Transport{Resolver: Static{{Addr: hangsUp}}}, svc, false, false},
		{"no headers in time", &Transport{Resolver: Static{{Addr: silent}}, Base: &http.Transport{
			ResponseHeaderTimeout: time.Millisecond}}, svc, false, true},
	} {
		_, err := client(t, c.tr).Do(request(t, "POST", c.url, nil))
		var ue *url.Error
		if got := errors.Is(err, ErrUnreached); !errors.As(err, &ue) || got != c.unreached || ue.Timeout() != c.timeout {
			t.Errorf("%s: %v is unreached: %v, want %v; timeout: %v, want %v", c.name, err, got, c.unreached, ue.Timeout(), c.timeout)
		}
	}
	// A caller that left gets its own reason, and decides by itself.
	_, err := client(t, &Transport{Resolver: Static{{Addr: silent}}}).Do(request(t, "GET", svc, nil).WithContext(canceled))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

// What was unreached keeps its text and what it wraps.
func TestUnreachedErrorIsStillTheOneOfTheConnection(t *testing.T) {
	_, err := client(t, &Transport{Resolver: static(serve(t, 1, hello, withTLS))}).Get("https://svc.test/")
	var cert *tls.CertificateVerificationError
	var failed *AttemptError
	if !errors.As(err, &cert) || !errors.As(err, &failed) || failed.Err.Error() != cert.Error() || failed.Sent || failed.Attempt != 1 {
		t.Errorf("%v, want what net/http says", err)
	}
	if once := unreached(io.EOF); unreached(once) != once {
		t.Error("an error was wrapped twice")
	}
	te := error(&TargetError{Err: evenkeel.ErrEmpty})
	if !errors.Is(te, evenkeel.ErrEmpty) || unreached(te) != te {
		t.Errorf("%v", te)
	}
}
