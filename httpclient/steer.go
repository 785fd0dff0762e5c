package httpclient

import (
	"errors"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel"
)

// pinned reports whether the caller wants one endpoint and no other.
func (c *control) pinned() bool { return c.pin.text != "" }

// steered reports whether the caller has a say in which endpoint is chosen.
func (c *call) steered() bool {
	return c.control != nil && (c.control.pinned() || len(c.control.avoid) > 0)
}

// steer picks the endpoint that the caller wants, or none of those that it does not want if there is another.
func (g *group) steer(now time.Time, r evenkeel.Request, ctl *control) (p evenkeel.Pick[*endpoint], err error) {
	if !ctl.pinned() {
		return g.avoid(now, r, ctl)
	}
	if err = ctl.pin.err; err == nil {
		id := ctl.pin.of(g.target)
		p, err = g.pool.PickIDAt(now, id, r)
		if errors.Is(err, evenkeel.ErrNoneReady) && g.checks != nil {
			g.mu.Lock() // a list that is being taken over holds its newcomers until it is done
			p, err = g.pool.PickIDAt(now, id, r)
			g.mu.Unlock()
		}
	}
	if err != nil && err != evenkeel.ErrClosed {
		err = &TargetError{Target: g.target, Op: "pick endpoint " + clip(ctl.pin.text), Err: err}
	}
	return p, err
}

// avoid picks none of the endpoints that the caller does not want, if there is another. A pool knows
// endpoints by their records, and those of endpoints that never had a request are found out
// by picking them.
func (g *group) avoid(now time.Time, r evenkeel.Request, ctl *control) (evenkeel.Pick[*endpoint], error) {
	unwanted := make([]string, len(ctl.avoid))
	for i := range ctl.avoid {
		unwanted[i] = ctl.avoid[i].of(g.target)
	}
	r.Avoid = append(g.records(unwanted), r.Avoid...)
	for {
		p, err := g.pool.PickAt(now, r)
		if err != nil || slices.Contains(r.Avoid, p.Record()) || !slices.Contains(unwanted, p.Handle().addr) {
			return p, err
		}
		p.Handle().record.Store(p.Record()) // next time it is known
		r.Avoid = append(r.Avoid, p.Record())
		g.put(&p)
	}
}

// records returns the records, as far as they are known, of the endpoints with those IDs.
func (g *group) records(ids []string) (list []*evenkeel.Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range ids {
		if e := g.endpoints[id]; e != nil {
			if rec := e.record.Load(); rec != nil {
				list = append(list, rec)
			}
		}
	}
	return list
}
