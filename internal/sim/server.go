package sim

import (
	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// server is the state of one server.
type server struct {
	// What it is.
	workers int // 0: any number
	sharing bool
	speed   float64
	id      string
	weight  evenkeel.Weight
	phases  []Phase

	// What holds now, set by the timetable.
	law       Law
	slow      float64 // the constant factors
	ramps     []Phase // those whose factor changes
	fail      picker.Outcome
	failAfter int64
	failShare float64
	hang      bool
	member    bool
	drained   bool

	// Its work.
	load  int // requests at hand or on the way
	busy  int // workers at work
	queue ring[int32]
	share shared
	says  *reporter // nil: nothing
}

func (r *run) prepareServers() {
	s := r.scenario
	r.servers = make([]server, len(s.Servers))
	for i := range s.Servers {
		v := &s.Servers[i]
		r.servers[i] = server{
			workers: v.Workers, sharing: v.Sharing, speed: v.speed(), id: serverID(i),
			weight: v.Weight, phases: v.Phases, says: newReporter(&s.Reports, v.Report),
		}
		r.refreshServer(i)
	}
}

// refreshServer works out what holds for server i now.
func (r *run) refreshServer(i int) {
	v := &r.servers[i]
	v.law = r.scenario.Servers[i].Service
	if v.law == nil {
		v.law = r.scenario.Service
	}
	v.slow, v.ramps = 1, v.ramps[:0]
	v.fail, v.hang, v.member, v.drained = picker.Unknown, false, true, false
	for _, p := range v.phases {
		if r.now < int64(p.From) || r.now >= int64(p.Until) {
			continue
		}
		switch {
		case p.SlowEnd != 0:
			v.ramps = append(v.ramps, p)
		case p.Slow != 0:
			v.slow *= p.Slow
		}
		if p.Service != nil {
			v.law = p.Service
		}
		if p.Fail != picker.Unknown {
			v.fail, v.failAfter, v.failShare = p.Fail, int64(p.FailAfter), p.FailShare
			if v.failShare == 0 {
				v.failShare = 1
			}
		}
		v.hang = v.hang || p.Hang
		v.member = v.member && !p.Absent
		v.drained = v.drained || p.Drained
	}
}

// factor is what the time of work is multiplied by at instant now.
func (v *server) factor(now int64) float64 {
	f := v.slow
	for _, p := range v.ramps {
		from := p.Slow
		if from == 0 {
			from = 1
		}
		part := float64(now-int64(p.From)) / float64(p.Until-p.From)
		f *= from + float64(part*(p.SlowEnd-from))
	}
	return f / v.speed
}

func (v *server) meanNow(now int64) float64 {
	if v.law == nil {
		return v.factor(now)
	}
	return v.law.Mean() * v.factor(now)
}

// timeOf returns how long the work of q takes on v if it begins now.
func (r *run) timeOf(v *server, q *request) float64 {
	law := r.classes[q.class].Service
	if law == nil {
		law = v.law
	}
	return law.At(q.u) * v.factor(r.now)
}

// comeIn is the moment when a request reaches its server.
func (r *run) comeIn(slot int32) {
	q := &r.requests[slot]
	v := &r.servers[q.server]
	if v.hang {
		r.lose(slot)
		return
	}
	v.says.begin(q, r.now)
	q.outcome = picker.Success
	if v.fail != picker.Unknown && (v.failShare == 1 || uniform(&r.chance) < v.failShare) {
		q.outcome = v.fail
		r.later(r.now+v.failAfter, evFailed, slot, 0)
		return
	}
	switch {
	case v.sharing:
		r.joinShared(q.server, slot)
	case v.workers == 0 || v.busy < v.workers:
		r.begin(slot)
	default:
		v.queue.push(slot)
	}
}

// begin gives a request a worker.
func (r *run) begin(slot int32) {
	q := &r.requests[slot]
	v := &r.servers[q.server]
	r.stats.busy(r, q.server, v.busy)
	v.busy++
	work := nanoseconds(r.timeOf(v, q))
	r.firstByteAfter(slot, work)
	r.later(r.now+work, evServed, slot, 0)
}

// firstByteAfter plans the first byte of an answer whose work begins now and takes so
// long.
func (r *run) firstByteAfter(slot int32, work int64) {
	q := &r.requests[slot]
	if law := r.classes[q.class].FirstByte; law != nil {
		if first := nanoseconds(law.At(uniform(&r.chance))); first < work {
			r.later(r.now+first+r.delay, evFirstByte, slot, q.id)
		}
	}
}

// workDone is the moment when a worker has finished a request and takes the next.
func (r *run) workDone(slot int32) {
	i := r.requests[slot].server
	v := &r.servers[i]
	r.stats.busy(r, i, v.busy)
	v.busy--
	if v.queue.n > 0 {
		r.begin(v.queue.pop())
	}
	r.leave(slot)
}
