package orcahttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
)

// responseWriter adds the report when the header is written, and notes what the response is. It
// can do what the one it wraps can: see full.
type responseWriter struct {
	http.ResponseWriter
	handler *Handler
	format  Format
	wanted  bool // the request gets a report
	trailer bool // as a trailer, if the response can have one

	status   int // 0 until the header is written
	flushed  bool
	hijacked bool
	returned bool
}

// Unwrap is for http.ResponseController, which sets deadlines and full duplex with it.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *responseWriter) WriteHeader(status int) {
	w.header(status)
	w.ResponseWriter.WriteHeader(status)
}

// header does what has to be done before the header is written with a status.
func (w *responseWriter) header(status int) {
	// Informational headers come before the header; after 101 there is no more HTTP.
	if w.status != 0 || status < 200 && status != http.StatusSwitchingProtocols {
		return
	}
	w.status = status
	h := w.ResponseWriter.Header()
	bodiless := status < 200 || status == http.StatusNoContent || status == http.StatusNotModified
	if w.trailer && (bodiless || len(h["Content-Length"]) > 0) {
		w.trailer = false
	}
	removeReport(h)
	switch {
	case !w.wanted:
	case w.trailer:
		// Announced, HTTP/1.1 sends it in chunks even if the body is short.
		h.Add("Trailer", fieldName(w.format))
	default:
		w.handler.report(h, w.format, "")
	}
}

// removeReport removes from a header the report that a proxy passes on, and that one comes as a trailer.
func removeReport(h http.Header) {
	delete(h, Header)
	delete(h, HeaderBin)
	if len(h["Trailer"]) == 0 {
		return
	}
	var others []string
	for _, line := range h["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = trim(name); !strings.EqualFold(name, Header) && !strings.EqualFold(name, HeaderBin) {
				others = append(others, name)
			}
		}
	}
	if delete(h, "Trailer"); len(others) > 0 {
		h["Trailer"] = []string{strings.Join(others, ", ")}
	}
}

func fieldName(f Format) string {
	if f == BinaryHeader {
		return HeaderBin
	}
	return Header
}

// finish is after the handler: a response without a body has its header written by net/http only
// now, and a trailer is due.
func (w *responseWriter) finish() {
	if w.hijacked {
		return
	}
	if w.status == 0 {
		// Nothing was written. What is in the header now is sent as a header.
		w.trailer = false
		w.header(http.StatusOK)
	}
	// Of trailers that were not announced net/http knows by this prefix; the others are as they were announced.
	delete(w.ResponseWriter.Header(), http.TrailerPrefix+Header)
	delete(w.ResponseWriter.Header(), http.TrailerPrefix+HeaderBin)
	if w.wanted && w.trailer {
		// net/http takes announced names as they are.
		w.handler.report(w.ResponseWriter.Header(), w.format, "")
	}
}

// Write implements http.ResponseWriter.
func (w *responseWriter) Write(b []byte) (int, error) {
	w.header(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// WriteString implements io.StringWriter.
func (w *responseWriter) WriteString(s string) (int, error) {
	w.header(http.StatusOK)
	return io.WriteString(w.ResponseWriter, s)
}

// flush is FlushError for those that can. http.ResponseController and assertions both end here.
func (w *responseWriter) flush() error {
	w.header(http.StatusOK)
	w.flushed = true
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// full returns w with the optional methods of what it wraps and no others: handlers find out by
// them what they can do. net/http's writers are of three kinds: HTTP/1.1 flushes, hijacks
// and reads from files; HTTP/2 flushes and pushes; others write.
func (w *responseWriter) full() http.ResponseWriter {
	_, flushes := w.ResponseWriter.(http.Flusher)
	_, hijacks := w.ResponseWriter.(http.Hijacker)
	_, pushes := w.ResponseWriter.(http.Pusher)
	switch {
	case flushes && hijacks:
		return hijacker{flusher{w}}
	case flushes && pushes:
		return pusher{flusher{w}}
	case flushes:
		return flusher{w}
	}
	return w
}

type flusher struct{ *responseWriter }

// Flush implements http.Flusher.
func (w flusher) Flush() { _ = w.flush() }

// FlushError is what http.ResponseController looks for first.
func (w flusher) FlushError() error { return w.flush() }

type pusher struct{ flusher }

// Push implements http.Pusher.
func (w pusher) Push(target string, opts *http.PushOptions) error {
	return w.ResponseWriter.(http.Pusher).Push(target, opts)
}

type hijacker struct{ flusher }

// Hijack implements http.Hijacker.
func (w hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := w.ResponseWriter.(http.Hijacker).Hijack()
	if err == nil {
		w.hijacked = true
	}
	return conn, rw, err
}

// ReadFrom implements io.ReaderFrom: net/http sends files without copying them through memory.
func (w hijacker) ReadFrom(r io.Reader) (int64, error) {
	if from, ok := w.ResponseWriter.(io.ReaderFrom); ok {
		w.header(http.StatusOK)
		return from.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{w.responseWriter}, r)
}
