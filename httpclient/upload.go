package httpclient

import (
	"sync"

	"github.com/evenkeel/evenkeel"
)

// upload is how far a request's body is. An answer may come, and end, while the body is still being sent: the
// endpoint has the request in hand until both have ended.
type upload struct {
	// Guarded by mu.
	mu   sync.Mutex
	open int  // bodies that net/http has and has not closed: one more while it sends the request again
	read int  // those of them that it has read to their end
	over bool // the answer is
	owes bool // Done
	pick evenkeel.Pick[*endpoint]
	last evenkeel.Result
}

// begin notes that net/http has got one more body.
func (u *upload) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open++
}

// hold takes over the end of a pick if the body is still on its way. One of HTTP/2 that was read to its end is closed a moment
// after the answer's end: that is not waited for.
func (u *upload) hold(pick *evenkeel.Pick[*endpoint], last evenkeel.Result) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.open > u.read {
		u.owes, u.pick, u.last = true, *pick, last
	}
	return u.owes
}

// uploading reports whether the request's body is still on its way.
func (s *sent) uploading() bool {
	if s == nil {
		return false
	}
	s.upload.mu.Lock()
	defer s.upload.mu.Unlock()
	return s.upload.open > s.upload.read
}

// end ends a request whose answer has ended: now, or when its body has.
func (s *sent) end(pick *evenkeel.Pick[*endpoint], last evenkeel.Result) {
	if s == nil || !s.upload.hold(pick, last) {
		e := pick.Handle()
		pick.Done(last)
		e.release()
	}
	s.finish()
}

// finish ends the try's own context, when its answer has ended. A request's body that is still on its way goes on.
func (s *sent) finish() {
	if s == nil {
		return
	}
	u := &s.upload
	u.mu.Lock()
	u.over = true
	sent := u.open == 0
	u.mu.Unlock()
	if sent && s.cancel != nil {
		s.cancel(nil)
	}
}

// exhausted is called when net/http has read a body to its end.
func (s *sent) exhausted(b *sentBody) {
	s.upload.mu.Lock()
	defer s.upload.mu.Unlock()
	if !b.read && !b.ended {
		b.read = true
		s.upload.read++
	}
}

// uploaded is called when net/http closes a body, or cannot read on.
func (s *sent) uploaded(b *sentBody) {
	u := &s.upload
	u.mu.Lock()
	if b.ended {
		u.mu.Unlock()
		return
	}
	b.ended = true
	u.open--
	if b.read {
		u.read--
	}
	over := u.open == 0 && u.over
	owes := u.open == 0 && u.owes
	if owes {
		u.owes = false
	}
	u.mu.Unlock()
	if owes { // nobody else touches pick and last any more
		e := u.pick.Handle()
		u.pick.Done(u.last)
		e.release()
	}
	if over && s.cancel != nil {
		s.cancel(nil)
	}
}
