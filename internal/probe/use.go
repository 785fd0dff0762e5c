package probe

// Used notes that the pool has a request. Without any for a while, checks are made less often.
func (r *Runner) Used() {
	if r.used.Load() { // all requests would write the same
		return
	}
	if !r.used.Swap(true) && r.idle.Load() {
		r.nudge()
	}
}

// readUse tells the checks whether there were requests, before they go by that at the same instant: they
// and the Runner must be of one mind about whether there are none, or the next would wake nobody. While
// there are, it looks once in half an interval, so that hardly any request has to write. mu is held.
func (r *Runner) readUse(now int64) {
	interval := int64(r.config.Interval)
	over := now-r.usedAt > 2*interval // as the checks see it
	if !r.idle.Load() && !over && now-r.usedRead < interval/2 {
		return
	}
	r.usedRead = now
	if !r.used.Swap(false) {
		if r.idle.Load() || !over {
			return
		}
		r.idle.Store(true)
		if !r.used.Swap(false) { // else it came in between, and has woken nobody
			return
		}
	}
	r.idle.Store(false)
	r.usedAt = now
	r.checks.Used(now)
}
