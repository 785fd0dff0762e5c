package sim

import "math"

// shared is processor sharing. Instead of following what is left of each request's work,
// it follows how much work one request has been given since the server was last idle: a
// request ends when that has grown by its own work since it came, so who ends next is
// known without touching the others.
type shared struct {
	given  float64 // work per request so far, nanoseconds
	at     int64   // when that was so
	jobs   []job   // a binary heap by ends
	joined uint64
	plan   uint32 // number of the valid plan; events of others are void
}

// job is a request that ends when given reaches ends. Equal ones end as they came.
type job struct {
	ends  float64
	order uint64
	slot  int32
}

func (a job) before(b job) bool { return a.ends < b.ends || a.ends == b.ends && a.order < b.order }

// rate is the part of a worker that each of n requests gets.
func (v *server) rate() float64 {
	return math.Min(1, float64(v.workers)/float64(len(v.share.jobs)))
}

// advance brings given up to now.
func (v *server) advance(now int64) {
	h := &v.share
	if len(h.jobs) == 0 {
		h.given = 0 // sums of many small steps lose digits
	} else {
		h.given += float64(float64(now-h.at) * v.rate())
	}
	h.at = now
}

// joinShared lets a request share server i.
func (r *run) joinShared(i, slot int32) {
	v := &r.servers[i]
	r.stats.busy(r, i, v.busy)
	v.advance(r.now)
	work := math.Max(r.timeOf(v, &r.requests[slot]), 0)
	r.firstByteAfter(slot, nanoseconds(work))
	h := &v.share
	h.joined++
	h.add(job{ends: h.given + work, order: h.joined, slot: slot})
	v.busy = min(len(h.jobs), v.workers)
	r.planShared(i)
}

// planShared plans the next end at server i, in place of earlier plans.
func (r *run) planShared(i int32) {
	v := &r.servers[i]
	h := &v.share
	h.plan++
	if len(h.jobs) == 0 {
		return
	}
	left := math.Max(h.jobs[0].ends-h.given, 0) / v.rate()
	r.later(r.now+nanoseconds(math.Ceil(left)), evShared, i, h.plan)
}

// sharedDone ends the request that needed least at server i, if the plan is valid.
func (r *run) sharedDone(i int32, plan uint32) {
	v := &r.servers[i]
	h := &v.share
	if plan != h.plan {
		return
	}
	r.stats.busy(r, i, v.busy)
	v.advance(r.now)
	first := h.pop()
	h.given = math.Max(h.given, first.ends)
	v.busy = min(len(h.jobs), v.workers)
	r.planShared(i)
	r.leave(first.slot)
}

func (h *shared) add(j job) {
	h.jobs = append(h.jobs, j)
	i := len(h.jobs) - 1
	for i > 0 && j.before(h.jobs[(i-1)/2]) {
		h.jobs[i] = h.jobs[(i-1)/2]
		i = (i - 1) / 2
	}
	h.jobs[i] = j
}

func (h *shared) pop() job {
	first := h.jobs[0]
	n := len(h.jobs) - 1
	j := h.jobs[n]
	h.jobs = h.jobs[:n]
	if n == 0 {
		return first
	}
	i := 0
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && h.jobs[c+1].before(h.jobs[c]) {
			c++
		}
		if !h.jobs[c].before(j) {
			break
		}
		h.jobs[i] = h.jobs[c]
		i = c
	}
	h.jobs[i] = j
	return first
}
