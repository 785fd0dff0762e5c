package grpcbalancer

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// EventKind says what an [Event] is about.
type EventKind uint8

const (
	// Connectivity is a change of the connection of an endpoint, or of the whole.
	Connectivity EventKind = iota
	// Ejection is an endpoint that gets no calls because of how its calls ended, or is on its way back.
	Ejection
	// Distress is the channel as a whole: verdicts on endpoints are no longer believed, or calls in
	// flight are limited; and the end of that.
	Distress
	// Resolver is what is wrong with the name resolver or its list; or that it is well again.
	Resolver
	// Warning is what is allowed and may not be what is meant.
	Warning

	eventKinds = iota
)

var eventKindNames = [eventKinds]string{"connectivity", "ejection", "distress", "resolver", "warning"}

// String returns the kind's name, in lower case.
func (k EventKind) String() string {
	if int(k) < eventKinds {
		return eventKindNames[k]
	}
	return "invalid"
}

// Event is something that happened to a policy, for people: the wording of Text may change.
type Event struct {
	// At is when it was noticed.
	At time.Time
	// Target is the channel's, "" where a parent policy does not tell it.
	Target string
	// Policy is the name of the policy: "evenkeel", or one of [Register].
	Policy string
	// Endpoint is the one that it happened to: its addresses. "" means all of the channel.
	Endpoint string
	// Kind says what it is about.
	Kind EventKind
	// Text says what happened, such as "READY" or "ejected: consecutive failures".
	Text string
}

// String returns the event in a line, without its time.
func (e Event) String() string {
	where := e.Target
	if e.Endpoint != "" {
		where += " " + e.Endpoint
	}
	return fmt.Sprintf("%s: %v: %s", where, e.Kind, e.Text)
}

// Observe has f told of the events of all policies of the process from now on, until stop is called:
//
//	stop := grpcbalancer.Observe(func(e grpcbalancer.Event) { log.Print(e) })
//
// f is called one event at a time, in their order, from a goroutine that holds no lock, and may call
// anything, Observe and stop included. While it is slow, up to 4,096 events wait; of those beyond, their number
// is told. An ejection is noticed within about a second. stop may be called from anywhere, more than once;
// a call of f that has begun may go on after it.
//
// Nothing is noted while nobody observes. A policy with observers compares its endpoints once a second at
// most, in O(n).
func Observe(f func(Event)) (stop func()) { return events.add(f) }

// maxEvents is how many events wait for slow observers.
const maxEvents = 4096

// events are those of the process.
var events observers

// observers tell functions what happens.
type observers struct {
	any atomic.Bool // there are some

	mu sync.Mutex

	// Guarded by mu.
	list    []*func(Event) // never changed in place
	waiting []Event
	lost    uint64 // that found no place
	telling bool   // tell runs
}

func (o *observers) add(f func(Event)) (stop func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	own := &f
	o.list = append(slices.Clip(o.list), own)
	o.any.Store(true)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.list = slices.DeleteFunc(slices.Clone(o.list), func(g *func(Event)) bool { return g == own })
		o.any.Store(len(o.list) > 0)
	}
}

// emit has an event told. Whoever calls it may hold any lock.
func (o *observers) emit(e Event) {
	if !o.any.Load() {
		return
	}
	e.At = time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == maxEvents {
		o.lost++
		return
	}
	o.waiting = append(o.waiting, e)
	if !o.telling {
		o.telling = true
		go o.tell()
	}
}

// tell runs until no event waits.
func (o *observers) tell() {
	for {
		o.mu.Lock()
		batch, list, lost := o.waiting, o.list, o.lost
		o.waiting, o.lost = nil, 0
		o.telling = len(batch) > 0
		o.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		if lost > 0 {
			batch = append(batch, Event{At: time.Now(), Kind: Warning, Text: fmt.Sprintf("%d events were lost: an observer is slow", lost)})
		}
		for _, e := range batch {
			for _, f := range list {
				(*f)(e)
			}
		}
	}
}
