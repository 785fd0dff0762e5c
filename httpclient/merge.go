package httpclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Merge is a Resolver whose list is the union of what its sources find, say a registry and a few fixed addresses.
// It must not be changed while it is in use, and its sources must not be in use elsewhere
// unless they allow that, as all of this package do.
//
// An address that several sources have, in whatever form, is one endpoint with the weight that the first of them gives it. A source that
// fails keeps its last good list, and its error shows in Snapshot; so does one whose list has a problem. One that
// ends without an error keeps its list for good, one that ends with an error is watched again after 1 to 32 seconds. The first list comes
// when each source has said something, or after a second with what there is by then. For each target there is a goroutine for each
// source, and two more.
type Merge []Resolver

// mergePatience is how long the first list waits for slow sources.
const mergePatience = time.Second

// Validate reports that there is no source, or one that is nil, and every problem of theirs.
func (m Merge) Validate() error {
	if len(m) == 0 {
		return errors.New("httpclient: Merge has 0 resolvers, want at least 1")
	}
	var problems []error
	for i, r := range m {
		if r == nil {
			problems = append(problems, fmt.Errorf("httpclient: Merge[%d] is nil, want a Resolver", i))
		} else if v, ok := r.(validator); ok {
			if err := v.Validate(); err != nil {
				problems = append(problems, fmt.Errorf("httpclient: Merge[%d]: %w", i, err))
			}
		}
	}
	return errors.Join(problems...)
}

// Watch watches all sources, and returns when all their Watches have.
func (m Merge) Watch(ctx context.Context, target Target, sink Sink) error {
	if err := m.Validate(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	u := &union{sink: sink, port: target.port(), sources: make([]*mergeSource, len(m)), waiting: len(m)}
	var sources, helpers sync.WaitGroup
	for i := range m {
		u.sources[i] = &mergeSource{of: u, index: i, hints: make(chan struct{}, 1)}
	}
	for i, r := range m {
		sources.Go(func() { watchAgain(ctx, target, r, u.sources[i]) })
	}
	helpers.Go(func() { u.spreadHints(ctx) })
	helpers.Go(func() {
		if pause(ctx, mergePatience, time.Time{}, nil) {
			u.waitNoLonger()
		}
	})
	sources.Wait()
	err := ctx.Err()
	cancel()
	helpers.Wait()
	return err
}

// watchAgain runs a source until ctx is done, or it has no more to say.
func watchAgain(ctx context.Context, target Target, r Resolver, s *mergeSource) {
	for failures := 0; ; failures++ {
		before := s.updateCount()
		err := r.Watch(ctx, target, s)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			if s.updateCount() == 0 {
				s.Error(errNoList)
			}
			return
		}
		s.Error(err)
		if s.updateCount() != before { // it worked in between
			failures = 0
		}
		if !pause(ctx, backoff(failures), time.Time{}, nil) {
			return
		}
	}
}

// union is the list of one Watch.
type union struct {
	// Set at construction.
	sink    Sink
	port    uint16
	sources []*mergeSource

	// mu is held while the sink is told, so that it hears of changes in their order.
	mu      sync.Mutex
	waiting int       // sources that the first list waits for
	sent    []Address // nil: there was no list yet
}

// mergeSource is the Sink of one source.
type mergeSource struct {
	of    *union
	index int
	hints chan struct{}

	// Guarded by the union's mu.
	heard   bool
	listed  bool
	updates uint64
	list    []Address
	places  []location // of list
	err     error      // of the last attempt
}

// Update takes a source's list over if it has no problem.
func (s *mergeSource) Update(list []Address) error {
	u := s.of
	u.mu.Lock()
	defer u.mu.Unlock()
	places, err := locate(list, u.port)
	if err != nil {
		u.failed(s, err)
		return err
	}
	recovered := s.err != nil
	s.list, s.places, s.err, s.listed = slices.Clone(list), places, nil, true
	s.updates++
	u.hear(s)
	return u.publish(recovered)
}

// Error takes note of a source's failure.
func (s *mergeSource) Error(err error) {
	if err == nil {
		err = errors.New("httpclient: the resolver reported an error without saying which")
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.failed(s, err)
}

// Refresh returns the source's own channel of hints.
func (s *mergeSource) Refresh() <-chan struct{} { return s.hints }

func (s *mergeSource) updateCount() uint64 {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.updates
}

// hear notes that a source has said something. mu is held, as for the other methods here.
func (u *union) hear(s *mergeSource) {
	if !s.heard {
		s.heard = true
		u.waiting--
	}
}

func (u *union) failed(s *mergeSource, err error) {
	s.err = fmt.Errorf("httpclient: Merge[%d]: %w", s.index, err)
	u.hear(s)
	u.complain()
}

// complain tells the sink what is wrong now. Before the first list that fails the requests that wait
// for it, and so has to wait for the other sources, too. mu is held.
func (u *union) complain() {
	switch {
	case u.sent != nil:
	case u.waiting > 0:
		return
	case u.ready():
		_ = u.publish(true) // the sink shows what is wrong
		return
	}
	if err := u.problems(); err != nil {
		u.sink.Error(err)
	}
}

// problems is what is wrong now with any source.
func (u *union) problems() error {
	var problems []error
	for _, s := range u.sources {
		problems = append(problems, s.err)
	}
	return errors.Join(problems...)
}

// ready reports whether the first list need not wait any longer, and there is one.
func (u *union) ready() bool {
	return u.waiting <= 0 && slices.ContainsFunc(u.sources, func(s *mergeSource) bool { return s.listed })
}

// publish tells the sink the union if it has changed, or anyway, and again what is wrong: a
// list takes the last error off the sink.
func (u *union) publish(anyway bool) error {
	if !u.ready() {
		return nil
	}
	all := u.all()
	if !anyway && u.sent != nil && slices.Equal(all, u.sent) {
		return nil
	}
	err := u.sink.Update(all)
	if err == nil {
		u.sent = all
	}
	if wrong := u.problems(); wrong != nil {
		u.sink.Error(wrong)
	}
	return err
}

// all returns the union, never nil.
func (u *union) all() []Address {
	all := []Address{}
	seen := map[location]bool{}
	for _, s := range u.sources {
		for i, l := range s.places {
			if !seen[l] {
				seen[l] = true
				all = append(all, s.list[i])
			}
		}
	}
	return all
}

// waitNoLonger publishes what there is.
func (u *union) waitNoLonger() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.sent == nil && u.waiting > 0 {
		u.waiting = 0
		u.complain()
	}
}

// spreadHints passes each hint on to every source.
func (u *union) spreadHints(ctx context.Context) {
	hints := u.sink.Refresh()
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-hints:
			if !ok {
				return
			}
		}
		for _, s := range u.sources {
			select {
			case s.hints <- struct{}{}:
			default: // it has not read the last one yet
			}
		}
	}
}
