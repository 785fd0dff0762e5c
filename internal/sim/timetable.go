package sim

import (
	"cmp"
	"slices"
)

// edge is an instant at which something changes that does not depend on requests.
type edge struct {
	at    int64
	every int64 // 0: once
	kind  edgeKind
	index int // a server or a window
}

type edgeKind uint8

const (
	edgeServer  edgeKind = iota // a phase of a server begins or ends
	edgeRefresh                 // clients' lists are updated to what they are
	edgeClose                   // a window ends
	edgeOpen                    // a window begins
	edgeTable                   // the shared table is renewed
	edgeBucket                  // the next step of the time series begins
)

// prepareTimetable collects all edges. What holds at instant 0 holds already.
func (r *run) prepareTimetable() {
	s := r.scenario
	for i := range s.Servers {
		for _, p := range s.Servers[i].Phases {
			for _, at := range []int64{int64(p.From), int64(p.Until)} {
				if at > 0 {
					r.table = append(r.table, edge{at: at, kind: edgeServer, index: i})
				}
			}
		}
	}
	if s.Refresh > 0 {
		r.table = append(r.table, edge{at: int64(s.Refresh), every: int64(s.Refresh), kind: edgeRefresh})
	}
	for i := range r.stats.windows {
		w := &r.stats.windows[i].Span
		if w.Until <= w.From {
			continue
		}
		r.table = append(r.table, edge{at: int64(w.From), kind: edgeOpen, index: i})
		if i > 0 {
			r.table = append(r.table, edge{at: int64(w.Until), kind: edgeClose, index: i})
		}
	}
	if age := int64(r.policy.TableAge); r.policy.Table != nil && age > 0 && !r.policy.TableOnDemand {
		r.table = append(r.table, edge{at: age, every: age, kind: edgeTable})
	}
	if s.Bucket > 0 {
		r.table = append(r.table, edge{at: int64(s.Bucket), every: int64(s.Bucket), kind: edgeBucket})
	}
	slices.SortStableFunc(r.table, edge.compare)
	if len(r.table) > 0 {
		r.next[srcTimetable] = r.table[0].at
	}
}

func (e edge) compare(f edge) int {
	return cmp.Or(cmp.Compare(e.at, f.at), cmp.Compare(e.kind, f.kind))
}

// turn does all that the timetable has for now.
func (r *run) turn() {
	update := false
	for len(r.table) > 0 && r.table[0].at == r.now {
		e := r.table[0]
		r.table = r.table[1:]
		switch e.kind {
		case edgeServer:
			v := &r.servers[e.index]
			member, drained := v.member, v.drained
			r.refreshServer(e.index)
			update = update || member != v.member || drained != v.drained
		case edgeTable:
			r.clients.setTable(r)
		case edgeRefresh:
			update = true
		case edgeClose:
			r.stats.close(r, e.index)
		case edgeOpen:
			r.stats.openWindow(r, e.index)
		case edgeBucket:
			r.stats.nextBucket(r)
		}
		if e.every > 0 {
			e.at += e.every
			i, _ := slices.BinarySearchFunc(r.table, e, edge.compare)
			r.table = slices.Insert(r.table, i, e)
		}
	}
	r.next[srcTimetable] = never
	if len(r.table) > 0 {
		r.next[srcTimetable] = r.table[0].at
	}
	if update {
		r.clients.update(r)
	}
}
