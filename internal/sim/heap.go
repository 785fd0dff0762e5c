package sim

// event is something that will happen at a server. It is 24 bytes without pointers,
// and lives in the heap itself.
type event struct {
	at int64
	// order counts events as they are made, above the kind in the low bits: of two at the
	// same instant, the one made first comes first.
	order uint64
	slot  int32  // a request, or a server for evShared
	tag   uint32 // tells whether the event is still meant
}

const (
	evServed    = iota // a worker has finished a request
	evFailed           // a request is refused
	evFirstByte        // the first byte of an answer reaches the client
	evShared           // a sharing server finishes the request that needs least
	evAgain            // a user who found no server tries again
	kindBits    = 3
)

func (e *event) kind() int { return int(e.order & (1<<kindBits - 1)) }

// heap is a four-ary heap of events by instant, then by order. Four children of 24 bytes
// lie on two cache lines, and the tree is half as high as a binary one.
type heap struct {
	events []event
	made   uint64
}

func (e event) before(f event) bool { return e.at < f.at || e.at == f.at && e.order < f.order }

func (h *heap) push(at int64, kind int, slot int32, tag uint32) {
	h.made++
	e := event{at: at, order: h.made<<kindBits | uint64(kind), slot: slot, tag: tag}
	h.events = append(h.events, e)
	i := len(h.events) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(h.events[parent]) {
			break
		}
		h.events[i] = h.events[parent]
		i = parent
	}
	h.events[i] = e
}

// pop removes and returns the first event. The heap must not be empty.
func (h *heap) pop() event {
	first := h.events[0]
	n := len(h.events) - 1
	e := h.events[n]
	h.events = h.events[:n]
	if n == 0 {
		return first
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= n {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, n); c++ {
			if h.events[c].before(h.events[least]) {
				least = c
			}
		}
		if !h.events[least].before(e) {
			break
		}
		h.events[i] = h.events[least]
		i = least
	}
	h.events[i] = e
	return first
}
