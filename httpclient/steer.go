package httpclient

import (
	"slices"
	"time"

	"github.com/evenkeel/evenkeel"
)

// steered reports whether the caller has a say in which endpoint is chosen.
func (c *call) steered() bool {
	return c.control != nil && (c.control.endpoint != "" || len(c.control.avoid) > 0)
}

// steer picks the endpoint that the caller wants, or one of those that it does not want to avoid. A pool
// knows endpoints by their records, and those of endpoints that never had a request are
// found out by picking them.
func (g *group) steer(now time.Time, r evenkeel.Request, c *call) (evenkeel.Pick[*endpoint], error) {
	const spare = 3 // a probe of an ejected endpoint goes before what a request avoids
	pin, wanted, err := g.wishes(c.control)
	if err != nil {
		return evenkeel.Pick[*endpoint]{}, err
	}
	avoid := g.recordsWithout(wanted)
	if pin == "" {
		avoid = append(avoid, r.Avoid...)
	}
	again := 0
	for {
		r.Avoid = avoid
		p, err := g.pool.PickAt(now, r)
		if err != nil {
			return p, err
		}
		rec := p.Record()
		known := slices.Contains(avoid, rec)
		if wanted(p.Handle().addr) || known && pin == "" { // or there is no other
			return p, nil
		}
		c.put(&p)
		if known {
			if again++; again > spare {
				return evenkeel.Pick[*endpoint]{}, &TargetError{Target: g.target, Op: "pick endpoint " + clip(pin), Err: evenkeel.ErrNoneReady}
			}
			continue
		}
		avoid = append(avoid, rec)
	}
}

// wishes returns the endpoint that is wanted alone, "" if there is none such, and what tells who is wanted.
func (g *group) wishes(ctl *control) (pin string, wanted func(id string) bool, err error) {
	if ctl.endpoint != "" {
		at, err := locate([]Address{{Addr: ctl.endpoint}}, g.target.port())
		if err != nil {
			return "", nil, &TargetError{Target: g.target, Op: "pick endpoint " + clip(ctl.endpoint), Err: err}
		}
		pin = at[0].String()
		return pin, func(id string) bool { return id == pin }, nil
	}
	shunned := make(map[string]bool, len(ctl.avoid))
	for _, a := range ctl.avoid {
		if at, err := locate([]Address{{Addr: a}}, g.target.port()); err == nil {
			shunned[at[0].String()] = true
		}
	}
	return "", func(id string) bool { return !shunned[id] }, nil
}

// recordsWithout returns the records, as far as they are known, of the endpoints that are not wanted.
func (g *group) recordsWithout(wanted func(id string) bool) (list []*evenkeel.Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, e := range g.endpoints {
		if rec := e.record.Load(); rec != nil && !wanted(id) {
			list = append(list, rec)
		}
	}
	return list
}
