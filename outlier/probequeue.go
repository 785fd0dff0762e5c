package outlier

import "cmp"

// probeQueue is a heap of permits by the instant from which they may be taken, so that
// finding the next one does not look at every endpoint. An entry is true only while the
// host's permit still says the same: taking a permit needs no lock, and leaves its entry
// behind.
type probeQueue []probeEntry

type probeEntry struct {
	at   int64
	host *Host
}

func (e probeEntry) before(o probeEntry) bool {
	return cmp.Or(cmp.Compare(e.at, o.at), cmp.Compare(e.host.id, o.host.id)) < 0
}

// push and pop are those of a binary heap; container/heap would allocate for each.
func (q *probeQueue) push(e probeEntry) {
	*q = append(*q, e)
	list := *q
	for i := len(list) - 1; i > 0; {
		parent := (i - 1) / 2
		if !list[i].before(list[parent]) {
			return
		}
		list[i], list[parent] = list[parent], list[i]
		i = parent
	}
}

func (q *probeQueue) pop() {
	list := *q
	last := len(list) - 1
	list[0], list[last] = list[last], probeEntry{}
	list = list[:last]
	*q = list
	for i := 0; ; {
		least := 2*i + 1
		if least >= last {
			return
		}
		if right := least + 1; right < last && list[right].before(list[least]) {
			least = right
		}
		if !list[least].before(list[i]) {
			return
		}
		list[i], list[least] = list[least], list[i]
		i = least
	}
}

// permitFrom opens the permit from an instant on.
func (d *Detector) permitFrom(h *Host, at int64) {
	h.permit.Store(at)
	d.queueProbe(h)
}

// queueProbe makes an open permit findable. It is called when one opens, and when a host
// with one may be probed again: entries of hosts that may not are dropped.
func (d *Detector) queueProbe(h *Host) {
	if p := h.permit.Load(); p >= 0 && p < permitDeciding {
		d.queue.push(probeEntry{p, h})
	}
}

// nextPermit returns the entry that has been open longest, or opens first.
func (d *Detector) nextPermit() (e probeEntry, ok bool) {
	for len(d.queue) > 0 {
		e = d.queue[0]
		if e.host.permit.Load() == e.at && d.mayProbe(e.host) {
			return e, true
		}
		d.queue.pop()
	}
	return probeEntry{}, false
}

// mayProbe: an endpoint that is known to be down needs no request to find out.
func (d *Detector) mayProbe(h *Host) bool {
	return h.member && State(h.state.Load()) == Ejected && h.standing == Usable
}

// planProbes notes when the next probe is due.
func (d *Detector) planProbes() {
	next := int64(permitClosed)
	if e, ok := d.nextPermit(); ok {
		next = e.at
	}
	d.nextProbe.Store(next)
	d.patience.Store(d.rules.maxBackoff)
}

// requeue starts over, after instants have moved.
func (d *Detector) requeue() {
	d.queue = d.queue[:0]
	for _, h := range d.hosts {
		d.queueProbe(h)
	}
}
