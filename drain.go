package evenkeel

import (
	"fmt"
	"time"
)

// maxDrain is as long as any request is waited for.
const maxDrain = 24 * time.Hour

func validateDrain(d time.Duration) error {
	if d < 0 || d > maxDrain {
		return fmt.Errorf("evenkeel: Config.DrainTimeout is %v, want 0 to %v", d, maxDrain)
	}
	return nil
}

// Drained returns the handles of the members that get nothing new because somebody drains them or because their weight is
// 0, nil if there are none: for whoever closes their connections when the last request has ended. See
// [Pool.InFlight].
func (p *Pool[T]) Drained() (list []T) {
	p.home.mu.Lock()
	defer p.home.mu.Unlock()
	if p.branch != nil {
		return p.drainedPart()
	}
	for i := range p.members.Len() {
		if s, _ := p.member(i).worst(); s == Draining || p.members.Weight(i) == 0 {
			list = append(list, p.handles[i])
		}
	}
	return list
}

// InFlight returns how many requests are in flight at the endpoint with that ID, whether the list still has it or
// not; 0 for one that is not known.
func (p *Pool[T]) InFlight(id string) int64 {
	p = p.home
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.registry.InFlight(id)
}
