package httpclient

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"reflect"
	"strings"
	"sync/atomic"
)

// sent is a request with a body as it is handed to net/http, and knows whether reading
// the body failed: net/http returns such an error as it is, or wrapped in one of the
// connection, so that it cannot be told from the endpoint's. It is one allocation, and
// one more for a GetBody.
type sent struct {
	req    http.Request // the caller's, but for the body
	body   sentBody
	failed atomic.Bool // the body's own Read returned an error

	cancel  context.CancelCauseFunc // of a try's own context; nil: it has none
	upload  upload
	tracked bool        // got counts
	got     atomic.Bool // there was a connection
	tracker *sent       // has tracked and got instead; nil: none
}

// gotConn is httptrace's.
func (s *sent) gotConn(httptrace.GotConnInfo) { s.got.Store(true) }

// connected reports whether something may have been sent: that there was a connection, or that nobody looked.
func (s *sent) connected() bool {
	if s != nil && s.tracker != nil {
		s = s.tracker
	}
	return s == nil || !s.tracked || s.got.Load()
}

// watched returns req as it is to be sent, and what watches its body: nil where there
// is no body that could fail.
func watched(req *http.Request) (*http.Request, *sent) {
	if req.Body == nil || req.Body == http.NoBody || inMemory(req.Body) {
		return req, nil
	}
	s := &sent{req: *req}
	s.body.ReadCloser, s.body.sent = req.Body, s
	s.upload.open = 1
	s.req.Body = &s.body
	if req.GetBody != nil { // net/http sends once more what came to a closed connection
		s.req.GetBody = func() (io.ReadCloser, error) {
			b, err := req.GetBody()
			if err != nil {
				s.failed.Store(true)
				return nil, err
			}
			s.upload.begin()
			return &sentBody{ReadCloser: b, sent: s}, nil
		}
	}
	return &s.req, s
}

// bodyFailed reports whether the request's body failed, before anything else did.
func (s *sent) bodyFailed() bool { return s != nil && s.failed.Load() }

// sentBody is the request's body of one attempt of net/http's. Close can come while a Read
// is running, and can be what makes that fail: then it was not the body.
type sentBody struct {
	io.ReadCloser
	sent   *sent
	closed atomic.Bool

	// Guarded by the upload's mu.
	read  bool // to its end
	ended bool // closed, or failed
}

// Read reads the body.
func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil || b.closed.Load():
	case err != io.EOF:
		b.sent.failed.Store(true)
		b.sent.uploaded(b)
	default:
		b.sent.exhausted(b)
	}
	return n, err
}

// Close closes the body.
func (b *sentBody) Close() error {
	b.closed.Store(true)
	err := b.ReadCloser.Close()
	b.sent.uploaded(b)
	return err
}

// The two types that io.NopCloser has, for readers without WriteTo and with it.
var nopClosers = [2]reflect.Type{
	reflect.TypeOf(io.NopCloser(http.NoBody)),
	reflect.TypeOf(io.NopCloser(struct{ io.Reader }{})),
}

// inMemory reports whether body is one that http.NewRequest made of bytes. Those cannot
// fail, and net/http sends them in one packet with the headers, but only if it sees
// what they are.
func inMemory(body io.ReadCloser) bool {
	if t := reflect.TypeOf(body); t != nopClosers[0] && t != nopClosers[1] {
		return false
	}
	switch reflect.ValueOf(body).Field(0).Interface().(type) {
	case *bytes.Reader, *bytes.Buffer, *strings.Reader:
		return true
	}
	return false
}
