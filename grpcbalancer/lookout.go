package grpcbalancer

import (
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
)

// lookEvery is the time between two looks at a pool for metrics, which are O(n). Observers are told of
// ejections by each sweep.
const lookEvery = 10 * time.Second

// lookout notices what a pool tells nobody. Its zero value has seen nothing.
type lookout struct {
	mu sync.Mutex

	// Guarded by mu.
	next     time.Time
	ejected  map[string]outlier.HostStats // those that are ejected, or on their way back
	panicked bool
	limited  bool
}

// look tells observers and metrics what became of the pool. No lock is held.
func (p *policy) look(pool *evenkeel.Pool[*endpoint], now time.Time) {
	l := &p.lookout
	l.mu.Lock()
	defer l.mu.Unlock()
	observed := events.any.Load()
	if !observed && now.Before(l.next) {
		return
	}
	l.next = now.Add(lookEvery)
	s := pool.Stats()
	p.meter.look(s.Ejected, p.refused.Load().news(s.Refused+s.Full))
	if !observed {
		l.ejected, l.panicked, l.limited = nil, false, false // who observes later is told of all that is then
		return
	}
	p.noticeHosts(l, s.Endpoints)
	if s.Panicking != l.panicked {
		p.emit(Distress, "", choose(s.Panicking,
			"panic: so few endpoints are available that verdicts are not believed", "the panic is over"))
	}
	if limited := s.Limit > 0; limited != l.limited {
		p.emit(Distress, "", choose(limited, fmt.Sprintf("calls in flight are limited to %d", s.Limit), "no limit any more"))
	}
	l.panicked, l.limited = s.Panicking, s.Limit > 0
}

// noticeHosts tells of endpoints that were ejected, and of those that are back. Called under l.mu.
func (p *policy) noticeHosts(l *lookout, endpoints []evenkeel.EndpointStats) {
	out := map[string]outlier.HostStats{}
	for _, e := range endpoints {
		was, known := l.ejected[e.ID]
		is := e.Ejection
		switch is.State {
		case outlier.Ejected, outlier.Probing, outlier.Ramping:
			out[e.ID] = is
			if !known || was.State != is.State {
				p.emit(Ejection, e.ID, ejectionText(is))
			}
		default:
			if known {
				p.emit(Ejection, e.ID, "back")
			}
		}
	}
	l.ejected = out
}

func ejectionText(s outlier.HostStats) string {
	if s.State == outlier.Ramping {
		return s.State.String()
	}
	return s.State.String() + ": " + s.Reason.String()
}

// noticeReport tells of a child's report that changed something. Called under mu.
func (p *policy) noticeReport(e *endpoint, was connectivity.State, s *balancer.State) {
	if was == s.ConnectivityState || !events.any.Load() {
		return
	}
	text := s.ConnectivityState.String()
	if err := errorOf(s); err != nil {
		text += ": " + err.Error()
	}
	p.emit(Connectivity, e.key, text)
}

// noticeResolver tells of what is wrong with the resolver from now on, and of its end. Called under mu.
func (p *policy) noticeResolver(err error) {
	switch was := p.resolverErr; {
	case err != nil && (was == nil || was.Error() != err.Error()):
		p.emit(Resolver, "", err.Error())
	case err == nil && was != nil:
		p.emit(Resolver, "", "well again")
	}
}

// emit has an event of this policy told. Any lock may be held.
func (p *policy) emit(kind EventKind, endpoint, text string) {
	events.emit(Event{Target: p.target(), Policy: p.name, Endpoint: endpoint, Kind: kind, Text: text})
}

func choose(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}
