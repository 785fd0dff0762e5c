package httpclient

import (
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
)

// heard is an Observer.
type heard struct {
	mu     sync.Mutex
	events []Event
}

func (h *heard) Observe(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// kinds are the kinds of what was told, joined.
func (h *heard) kinds() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []string
	for _, e := range h.events {
		list = append(list, e.Kind.String())
	}
	return strings.Join(list, ", ")
}

// connectedNow tells a request's trace that it has a connection, as net/http does.
func connectedNow(req *http.Request) {
	if t := httptrace.ContextClientTrace(req.Context()); t != nil && t.GotConn != nil {
		t.GotConn(httptrace.GotConnInfo{})
	}
}
