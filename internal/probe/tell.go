package probe

import "github.com/evenkeel/evenkeel"

// judge says what follows from a result of m: passed, and whether it changed the verdict. mu is held.
func (r *Runner) judge(id string, m *member, passed, changed bool) {
	switch healthy := r.healthy(id); {
	case healthy && (passed || changed):
		r.waits(m, false)
		r.say(id, evenkeel.Ready)
	case changed:
		r.waits(m, false)
		r.say(id, evenkeel.Failing)
		r.letGo()
	}
}

// say puts a change into the outbox. mu is held.
func (r *Runner) say(id string, s evenkeel.State) {
	r.outbox = append(r.outbox, evenkeel.StateChange{ID: id, State: s, Source: evenkeel.Checks})
}

// flush gives up mu and does what is to be done without it: whatever is in the outbox is told. When
// another goroutine is doing so already it does it all, as an earlier change must not be told after a
// later one.
func (r *Runner) flush() {
	for !r.telling && (len(r.outbox) > 0 && !r.stopped || len(r.later) > 0) {
		news, later := r.outbox, r.later
		r.outbox, r.later = nil, nil
		silent := r.stopped
		r.telling = true
		r.mu.Unlock()
		for _, f := range later {
			f()
		}
		if len(news) > 0 && !silent {
			r.out(news)
		}
		r.mu.Lock()
		r.telling = false
	}
	r.mu.Unlock()
}
