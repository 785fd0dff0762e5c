package probe

// AnyHealthy reports whether some endpoint is known to be healthy: whether it has passed a check, and has not
// failed as many since as take it out. It is O(endpoints).
func (r *Runner) AnyHealthy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.members {
		if r.healthy(id) {
			return true
		}
	}
	return false
}
