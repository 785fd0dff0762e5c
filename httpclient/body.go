package httpclient

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/evenkeel/evenkeel"
)

// answered books the headers of resp, returns what they say, and makes the request end with its body. What the
// headers say is learnt now: the body of an error may take its time, or be left open. The
// response stays the one that net/http made, with the body in a box.
func answered(req *http.Request, sent *sent, resp *http.Response, pick *evenkeel.Pick[*endpoint], reports reporting) evenkeel.Result {
	load, reported := reports.take(pick, resp.Header)
	e := pick.Handle()
	result := e.result(resp)
	result.Load = load
	none := bodyless(req, resp)
	if none && !sent.uploading() {
		sent.end(pick, result) // the same, with one look at the clock
		return result
	}
	pick.Answered(result)
	if none {
		sent.end(pick, evenkeel.Result{Outcome: result.Outcome})
		return result
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		if conn, ok := resp.Body.(io.ReadWriteCloser); ok {
			u := &upgraded{conn: conn}
			u.box(conn, req, sent, pick, result.Outcome)
			resp.Body = u
			return result
		}
	}
	b := new(body)
	b.box(resp.Body, req, sent, pick, result.Outcome)
	if reports.wanted && !reported {
		b.resp = resp
	}
	resp.Body = b
	return result
}

// bodyless reports whether there is nothing to wait for. Callers need not close a body
// that has nothing in it, and many don't. Comparing with http.NoBody would not do: in
// HTTP/2 the empty body has a type of its own.
func bodyless(req *http.Request, resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusSwitchingProtocols:
		return false // its body is the connection, whatever length it has
	case http.StatusNoContent, http.StatusNotModified:
		return true
	}
	return resp.ContentLength == 0 && len(resp.Trailer) == 0 ||
		req.Method == http.MethodHead || resp.Body == nil || resp.Body == http.NoBody
}

// body is the body of an answer and, in the same allocation, the pick that ends with
// it: at its end, an error, or Close, whichever comes first. Close may come while a
// Read is running.
type body struct {
	io.ReadCloser
	req     *http.Request // for its context
	sent    *sent         // nil if the request had no body that takes its time, and no context of its own
	pick    evenkeel.Pick[*endpoint]
	resp    *http.Response // nil unless its trailer may have a load report
	ended   atomic.Bool
	outcome evenkeel.Outcome // by the headers, and of a body that ends well
}

func (b *body) box(inner io.ReadCloser, req *http.Request, sent *sent, pick *evenkeel.Pick[*endpoint], outcome evenkeel.Outcome) {
	b.ReadCloser, b.req, b.sent, b.pick, b.outcome = inner, req, sent, *pick, outcome
}

// Read reads the body.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !b.ended.Load() {
		if err != io.EOF {
			err = b.pick.Handle().explain(err, nil)
		}
		outcome := b.outcome
		var trailer http.Header
		switch {
		case err == io.EOF: // a Reader returns it as it is
			if b.resp != nil {
				trailer = b.resp.Trailer
			}
		case b.sent.bodyFailed(): // which ends the answer too
			outcome = evenkeel.Unknown
		default:
			outcome = outcomeOfAnswerError(b.req, err)
		}
		b.end(outcome, trailer)
	}
	return n, err
}

// Close closes the body. A caller that has seen enough got its answer. The request
// ends before the inner Close, whose effect on a running Read is no failure.
func (b *body) Close() error {
	b.end(b.outcome, nil) // a Read may be at work on the trailer
	return b.ReadCloser.Close()
}

// end ends the request, once. It teaches more than the headers did only if they were good
// and the body was not. The trailer is the answer's once that is complete.
func (b *body) end(outcome evenkeel.Outcome, trailer http.Header) {
	if b.ended.Load() || !b.ended.CompareAndSwap(false, true) {
		return
	}
	result := evenkeel.Result{Outcome: outcome}
	if len(trailer) > 0 {
		result.Load, _ = reporting{wanted: true}.take(&b.pick, trailer)
	}
	b.sent.end(&b.pick, result)
}

// outcomeOfAnswerError maps an error of reading an answer's body: the connection was
// made and the request was answered, so the faults of those do not apply.
func outcomeOfAnswerError(req *http.Request, err error) evenkeel.Outcome {
	switch o := outcomeOfError(req, err); o {
	case evenkeel.Unreached, evenkeel.Unknown:
		if errors.Is(err, ErrDrained) {
			return evenkeel.Unknown
		}
		return evenkeel.Failure
	default:
		return o
	}
}

// upgraded is the connection that a 101 answer hands to the caller. It can be written
// to, which callers find out by its type.
type upgraded struct {
	body
	conn io.ReadWriteCloser
}

// Read reads from the connection. How it ends says nothing of the endpoint: the two
// sides speak a protocol of their own, and many of those end with a reset.
func (u *upgraded) Read(p []byte) (int, error) {
	n, err := u.conn.Read(p)
	if err != nil {
		u.end(evenkeel.Unknown, nil)
	}
	return n, err
}

// Write writes to the connection.
func (u *upgraded) Write(p []byte) (int, error) { return u.conn.Write(p) }

// CloseWrite closes the sending side, if the connection can do that.
func (u *upgraded) CloseWrite() error {
	if c, ok := u.conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return http.ErrNotSupported
}
