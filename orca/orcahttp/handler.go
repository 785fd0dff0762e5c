package orcahttp

import (
	"net/http"
	"strings"
	"sync"

	"github.com/evenkeel/evenkeel/orca"
)

// Handler counts requests around another handler and reports on every response. It must not be
// changed once it is in use. Next and Tracker are required; everything else may be zero.
//
// A request counts in flight until Next has returned. It counts as failed if Next panics (the panic
// goes on), or if Failed says so. What takes long by nature gives no latency: a response
// that was flushed before its end, and a connection that was taken over.
type Handler struct {
	// Next answers the requests. A report that it sends by itself, as a proxy passes on that of a server behind it, is
	// removed: it would be taken for this server's.
	Next http.Handler

	// Tracker counts. Several handlers, and orcagrpc's interceptors, may share one.
	Tracker *orca.Tracker

	// Format is how reports are written; the zero Format is endpoint-load-metrics-bin. A request
	// with endpoint-load-metrics-format gets the format it asks for. A report that TEXT or JSON cannot carry, for
	// its names or its length, is BIN.
	Format Format

	// OnRequest reports only to requests that ask for it by that header.
	OnRequest bool

	// Trailer sends the report after the body, when the request's own end is counted, instead of
	// before it. A response that can have no trailer (with a Content-Length, without a body, over
	// HTTP/1.0) has it in the header all the same. HTTP/1.1 responses are chunked then, however
	// short.
	Trailer bool

	// Failed says which status codes are errors for EPS. nil: 500 and above, but for 501, which is
	// the request's fault.
	Failed func(status int) bool
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	format, wanted := h.asked(req)
	rw := &responseWriter{
		ResponseWriter: w, handler: h, format: format, wanted: wanted,
		trailer: h.Trailer && wanted && req.Method != http.MethodHead && req.ProtoAtLeast(1, 1),
	}
	t := h.Tracker
	call := t.Begin(t.Now())
	kind := orca.Failed // unless Next returns
	defer func() {
		t.End(call, t.Now(), kind)
		// After a panic there is nobody to read it, and rw may still be in use.
		if kind != orca.Failed || rw.returned {
			rw.finish()
		}
	}()
	h.Next.ServeHTTP(rw.full(), req)
	rw.returned = true
	kind = h.kind(rw)
}

// kind says how a request that was answered counts.
func (h *Handler) kind(rw *responseWriter) orca.Kind {
	status := rw.status
	if status == 0 {
		status = http.StatusOK // what net/http sends if the handler writes nothing
	}
	failed := status >= 500 && status != http.StatusNotImplemented
	if h.Failed != nil {
		failed = h.Failed(status)
	}
	switch {
	case rw.hijacked:
		return orca.Streamed
	case failed:
		return orca.Failed
	case rw.flushed:
		return orca.Streamed
	}
	return orca.Served
}

// asked returns the format for a request and whether it gets a report.
func (h *Handler) asked(req *http.Request) (Format, bool) {
	for _, v := range req.Header[HeaderRequest] {
		switch {
		case strings.EqualFold(v, "TEXT"):
			return Text, true
		case strings.EqualFold(v, "JSON"):
			return JSON, true
		case strings.EqualFold(v, "BIN"):
			return Binary, true
		}
	}
	return h.Format, !h.OnRequest
}

// reports are used again: one for each request would be three allocations.
var reports = sync.Pool{New: func() any { return new(orca.Report) }}

// report sets the report in a header or trailer.
func (h *Handler) report(header http.Header, format Format, prefix string) {
	r := reports.Get().(*orca.Report)
	defer reports.Put(r)
	h.Tracker.Report(r, h.Tracker.Now())
	name, value, err := encode(r, format)
	if err != nil && (format == Text || format == JSON) {
		// Names that it cannot carry, or more of them than are allowed: for BIN, in the same field, they are not.
		name, value, err = encode(r, Binary)
	}
	if err != nil {
		return
	}
	header[prefix+name] = []string{value}
}
