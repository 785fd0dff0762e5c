package outlier

import (
	"cmp"
	"maps"
	"slices"
)

// rememberAtMost endpoints that left, for each of the list.
const rememberAtMost = 2

// Update replaces the list of members at instant now. Those that stay, by ID and in
// whatever order, keep their Host. In Soft those that left are remembered for a while,
// and come back as they left; in Envoy and A50 their state is gone. It is all or
// nothing: an error names every problem, and the list is as before.
//
// The slice is not kept. Indices in what comes back, and of all methods, are those of
// the new list.
func (d *Detector) Update(list []Member, now int64) ([]Change, error) {
	if err := checkMembers(list); err != nil {
		return nil, err
	}
	d.begin(now)
	before := len(d.hosts)
	var joined []*Host
	for _, h := range d.hosts {
		h.member = false
	}
	hosts := make([]*Host, len(list))
	for i, m := range list {
		h := d.byID[m.ID]
		if h == nil {
			h = d.returning(m)
			joined = append(joined, h)
		}
		h.index, h.member = i, true
		hosts[i] = h
	}
	for _, h := range d.hosts {
		if !h.member {
			d.leave(h)
		}
	}
	if !slices.Equal(d.hosts, hosts) {
		d.version++
	}
	d.hosts = hosts
	for i, m := range list {
		d.byID[m.ID] = hosts[i]
		d.setStanding(hosts[i], m.Standing)
	}
	for _, h := range joined {
		d.trackJoin(h, before == 0)
	}
	d.forgetLeft(max(before, len(list)))
	d.expire()
	d.forgetOldest(rememberAtMost * max(before, len(list)))
	return d.end(), nil
}

// returning gives the host of somebody who is not in the list: the old one or a new one.
func (d *Detector) returning(m Member) *Host {
	h := d.gone[m.ID]
	if h != nil && d.now-h.removedAt <= d.rules.remember {
		delete(d.gone, m.ID)
		d.queueProbe(h)
		return h
	}
	delete(d.gone, m.ID)
	h = &Host{shared: d.shared, ownerPart: ownerPart{id: m.ID, standing: m.Standing}}
	h.permit.Store(permitClosed)
	d.restartWindow(h)
	return h
}

func (d *Detector) leave(h *Host) {
	delete(d.byID, h.id)
	h.removedAt = d.now
	d.trackLeave(h)
	if d.rules.mode == Soft {
		d.gone[h.id] = h
	}
}

// expire drops those that left too long ago.
func (d *Detector) expire() {
	for id, h := range d.gone {
		if d.now-h.removedAt > d.rules.remember {
			delete(d.gone, id)
		}
	}
}

// forgetOldest bounds how many of those that left are remembered: the IDs of a list may be new
// ones each time.
func (d *Detector) forgetOldest(most int) {
	if len(d.gone) <= most {
		return
	}
	byAge := slices.SortedFunc(maps.Values(d.gone), func(a, b *Host) int {
		return cmp.Or(cmp.Compare(a.removedAt, b.removedAt), cmp.Compare(a.id, b.id))
	})
	for _, h := range byAge[:len(byAge)-most] {
		delete(d.gone, h.id)
	}
}

// SetStanding says what the owner knows of the member with that index. Values that are
// no Standing count as Unready. In Soft, a member that passes its checks again gets a
// ramp.
func (d *Detector) SetStanding(i int, s Standing, now int64) []Change {
	d.begin(now)
	if i >= 0 && i < len(d.hosts) {
		d.setStanding(d.hosts[i], s)
	}
	return d.end()
}

// StandingChange is one member's new standing.
type StandingChange struct {
	// Index is the member's in the list; others change nothing.
	Index int
	// Standing is the new one.
	Standing Standing
}

// SetStandings is SetStanding for several members, at the cost of one.
func (d *Detector) SetStandings(list []StandingChange, now int64) []Change {
	d.begin(now)
	for _, c := range list {
		if c.Index >= 0 && c.Index < len(d.hosts) {
			d.setStanding(d.hosts[c.Index], c.Standing)
		}
	}
	return d.end()
}

func (d *Detector) setStanding(h *Host, s Standing) {
	if s > Drained {
		s = Unready
	}
	from := h.standing
	if from == s {
		return
	}
	h.standing = s
	d.version++
	d.queueProbe(h)
	d.trackStanding(h, from)
	if from == Failing && s == Usable {
		d.startRamp(h, RampBegun)
	}
}

// StartRamp gives the member with that index a ramp from instant now on, such as for one
// whose connection was away for long. An ejected one gets its ramp when it returns.
// Without one in the Config, and in other modes, it does nothing.
func (d *Detector) StartRamp(i int, now int64) []Change {
	d.begin(now)
	if i >= 0 && i < len(d.hosts) {
		d.startRamp(d.hosts[i], RampBegun)
	}
	return d.end()
}
