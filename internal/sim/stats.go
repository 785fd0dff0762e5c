package sim

import (
	"math/bits"
	"time"
)

// stats is what a run counts as it goes.
type stats struct {
	windows []Window // Total first
	now     uint32   // bit i: windows[i] is open
	spans   []areas  // at the windows' openings
	mean    []area   // of each server, so far
	buckets []Bucket
	current []float64 // inFlight areas at the beginning of the current bucket
	length  int64     // of a bucket
	warm    int       // requests of the warm-up
	classes int
}

// area is the integral over time of a server's requests in flight and busy workers.
type area struct {
	open     int // in flight as clients count
	openAt   int64
	inFlight float64
	busyAt   int64
	busy     float64
}

// areas are the integrals of busy workers at one instant.
type areas struct {
	at   int64
	busy []float64
}

func (s *stats) prepare(r *run) {
	sc := r.scenario
	n := len(r.servers)
	s.mean = make([]area, n)
	s.warm, s.classes = sc.WarmUpRequests, len(r.classes)
	s.windows = make([]Window, 1+len(sc.Windows))
	s.windows[0].Span = Span{"total", sc.WarmUp, maxDuration}
	s.spans = make([]areas, len(s.windows))
	for i := range s.windows {
		w := &s.windows[i]
		if i > 0 {
			w.Span = sc.Windows[i-1]
		}
		w.Picks, w.MaxInFlight, w.Busy = make([]int, n), make([]int, n), make([]float64, n)
		w.ClassPicks = make([][]int, s.classes)
		for c := range w.ClassPicks {
			w.ClassPicks[c] = make([]int, n)
		}
	}
	if sc.Bucket > 0 {
		s.length = int64(sc.Bucket)
		s.buckets = make([]Bucket, (sc.Length+sc.Bucket-1)/sc.Bucket)
		s.current = make([]float64, n)
		for i := range s.buckets {
			s.buckets[i].From = time.Duration(i) * sc.Bucket
			b := &s.buckets[i]
			b.Picks, b.InFlight = make([]int, n), make([]float64, n)
			b.Good.coarse, b.bad.coarse = true, true
		}
	}
}

// arrived notes which parts of the run request n belongs to.
func (s *stats) arrived(r *run, q *request, n int) {
	q.windows = s.now
	if n < s.warm {
		q.windows &^= 1
	}
	q.bucket = -1
	if s.length > 0 {
		if b := r.now / s.length; b < int64(len(s.buckets)) {
			q.bucket = int32(b)
		}
	}
}

// picked counts a request that a server got.
func (s *stats) picked(r *run, q *request) {
	i := q.server
	a := &s.mean[i]
	s.integrate(a, r.now)
	a.open++
	for m := s.now; m != 0; m &= m - 1 {
		w := &s.windows[bits.TrailingZeros32(m)]
		w.MaxInFlight[i] = max(w.MaxInFlight[i], a.open)
	}
	for m := q.windows; m != 0; m &= m - 1 {
		w := &s.windows[bits.TrailingZeros32(m)]
		w.Picks[i]++
		w.ClassPicks[q.class][i]++
	}
	if q.bucket >= 0 {
		s.buckets[q.bucket].Picks[i]++
	}
}

// unpicked counts a request out that its client is through with.
func (s *stats) unpicked(r *run, q *request) {
	a := &s.mean[q.server]
	s.integrate(a, r.now)
	a.open--
}

func (s *stats) integrate(a *area, now int64) {
	a.inFlight += float64(float64(a.open) * float64(now-a.openAt))
	a.openAt = now
}

// busy notes that the number of server i's busy workers changes now from what it was.
func (s *stats) busy(r *run, i int32, was int) {
	a := &s.mean[i]
	now := min(r.now, r.trafficEnds)
	if now > a.busyAt {
		a.busy += float64(float64(was) * float64(now-a.busyAt))
		a.busyAt = now
	}
}

// ended counts how a request ended.
func (s *stats) ended(q *request, end ending, latency int64) {
	for m := q.windows; m != 0; m &= m - 1 {
		w := &s.windows[bits.TrailingZeros32(m)]
		w.Requests++
		w.record(end, latency)
	}
	if q.bucket >= 0 {
		b := &s.buckets[q.bucket]
		b.Requests++
		b.record(end, latency)
	}
}

// openWindow begins window i.
func (s *stats) openWindow(r *run, i int) {
	s.now |= 1 << i
	w := &s.windows[i]
	for k := range s.mean {
		w.MaxInFlight[k] = max(w.MaxInFlight[k], s.mean[k].open)
	}
	s.spans[i] = s.areas(r)
}

// close ends window i.
func (s *stats) close(r *run, i int) {
	s.now &^= 1 << i
	end := s.areas(r)
	begin := s.spans[i]
	if end.at <= begin.at {
		return
	}
	for k := range s.mean {
		s.windows[i].Busy[k] = (end.busy[k] - begin.busy[k]) / float64(end.at-begin.at)
	}
}

// areas brings the integrals of busy workers up to now and copies them.
func (s *stats) areas(r *run) areas {
	out := areas{at: min(r.now, r.trafficEnds), busy: make([]float64, len(s.mean))}
	for i := range s.mean {
		s.busy(r, int32(i), r.servers[i].busy)
		out.busy[i] = s.mean[i].busy
	}
	return out
}

// nextBucket ends the step of the time series that is over now.
func (s *stats) nextBucket(r *run) {
	k := r.now/s.length - 1
	if k >= int64(len(s.buckets)) {
		return
	}
	for i := range s.mean {
		a := &s.mean[i]
		s.integrate(a, r.now)
		s.buckets[k].InFlight[i] = (a.inFlight - s.current[i]) / float64(s.length)
		s.current[i] = a.inFlight
	}
	s.buckets[k].Ejected = r.clients.ejected(r)
}

// result ends what is still open and returns everything.
func (s *stats) result(r *run, seed uint64) *Result {
	out := &Result{
		Scenario: r.scenario.Name, Policy: r.policy.Name, Seed: seed,
		Load: r.scenario.Load(), Picks: r.sent, End: time.Duration(r.now),
		LateSweeps: r.clients.lateSweeps(r), Ejections: r.clients.ejections(r),
	}
	out.Overloaded = out.Load >= 1
	for m := s.now; m != 0; m &= m - 1 {
		s.close(r, bits.TrailingZeros32(m))
	}
	if s.length > 0 {
		r.now = (r.now/s.length + 1) * s.length
		s.nextBucket(r)
	}
	out.Total, out.Windows, out.Buckets = s.windows[0], s.windows[1:], s.buckets
	return out
}
