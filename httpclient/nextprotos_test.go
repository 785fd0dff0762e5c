package httpclient

import (
	"net/http"
	"sync"
	"testing"
)

// The transports of endpoints share no memory that net/http writes to when they are first used. It adds to
// TLSClientConfig.NextProtos, and Clone leaves clones with one array for all: without HTTP/1.1 that has room.
func TestEndpointsWithoutHTTP1ShareNoProtocolList(t *testing.T) {
	for _, only := range []func(*http.Protocols, bool){(*http.Protocols).SetHTTP2, (*http.Protocols).SetUnencryptedHTTP2} {
		base := &http.Transport{Protocols: new(http.Protocols)}
		only(base.Protocols, true)
		tmpl, err := template(base)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		leaves := make([]*http.Transport, 8)
		for i := range leaves {
			leaves[i] = fixedDial(tmpl, "127.0.0.1:1")
		}
		for _, leaf := range leaves {
			all.Go(func() { leaf.CloseIdleConnections() }) // sets HTTP/2 up, as the first request does
		}
		all.Wait()
		for _, leaf := range leaves[1:] {
			if a, b := leaves[0].TLSClientConfig.NextProtos, leaf.TLSClientConfig.NextProtos; cap(a) > 0 && cap(b) > 0 && &a[:1][0] == &b[:1][0] {
				t.Fatalf("two endpoints have one list of protocols, %q", a)
			}
		}
	}
}
