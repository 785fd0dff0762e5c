package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/orca/orcahttp"
)

// work is how long a request takes once it has a place.
const work = 10 * time.Millisecond

// rooms are what the servers have: how many requests at once, and how many of those places are always
// taken by work that clients do not know of.
var rooms = []room{{places: 2}, {places: 6, hidden: 2}, {places: 12, hidden: 3}}

type room struct{ places, hidden int }

// backend is one server.
type backend struct {
	room
	addr     string
	server   *http.Server
	place    chan struct{}
	stopped  chan struct{}
	others   sync.WaitGroup // the hidden work
	requests atomic.Int64   // answered since they were last counted

	mu    sync.Mutex
	busy  int           // places taken
	spent time.Duration // of all places, until at
	at    time.Time
	used  float64 // utilization, averaged over about a second
	since time.Time
}

// averagedOver is the time that a reported utilization is of: longer, and clients would follow late.
const averagedOver = time.Second

func startBackend(r room) (*backend, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &backend{room: r, addr: l.Addr().String(), place: make(chan struct{}, r.places), stopped: make(chan struct{})}
	b.at, b.since = time.Now(), time.Now()
	tracker := orca.NewTracker(orca.TrackerConfig{Add: func(report *orca.Report) { report.Application = b.utilization() }})
	b.server = &http.Server{
		Handler:  &orcahttp.Handler{Next: http.HandlerFunc(b.answer), Tracker: tracker},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() { _ = b.server.Serve(l) }() // ends with stop
	for range r.hidden {
		b.others.Go(b.workForOthers)
	}
	return b, nil
}

func (b *backend) stop() error {
	close(b.stopped)
	b.others.Wait()
	return b.server.Close()
}

func (b *backend) answer(w http.ResponseWriter, _ *http.Request) {
	b.do()
	b.requests.Add(1)
	_, _ = io.WriteString(w, "done\n") // who left does not read it
}

// workForOthers keeps a place taken.
func (b *backend) workForOthers() {
	for {
		select {
		case <-b.stopped:
			return
		default:
			b.do()
		}
	}
}

// do waits for a place and works.
func (b *backend) do() {
	b.place <- struct{}{}
	b.count(1)
	time.Sleep(work)
	b.count(-1)
	<-b.place
}

// count takes note that a place is taken, or free again.
func (b *backend) count(change int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(time.Now())
	b.busy += change
}

// pass lets time pass. mu is held.
func (b *backend) pass(now time.Time) {
	b.spent += time.Duration(b.busy) * now.Sub(b.at)
	b.at = now
	if over := now.Sub(b.since); over >= averagedOver {
		b.used = b.spent.Seconds() / over.Seconds() / float64(b.places)
		b.spent, b.since = 0, now
	}
}

// utilization is what part of the places was taken in the last second, 0 while that is not known.
func (b *backend) utilization() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(time.Now())
	return b.used
}
