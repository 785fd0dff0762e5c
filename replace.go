package evenkeel

import (
	"errors"
	"time"

	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// replace puts a configuration, a list, or both in force; nil means the present one.
func (p *Pool[T]) replace(t time.Time, c *Config, members []Member[T]) error {
	h := p.home
	h.mu.Lock()
	var err error
	switch {
	case p.branch != nil:
		err = p.replacePart(p.instant(t), c, members)
	case members != nil && len(p.branches) > 0 && !p.closed:
		err = errBranched
	default:
		err = p.replaceAt(p.instant(t), c, members)
	}
	news := h.newWarnings()
	h.mu.Unlock()
	h.tell(news)
	return err
}

// replaceAt does the work of replace. Everything that can fail comes first. mu is held.
func (p *Pool[T]) replaceAt(now int64, c *Config, members []Member[T]) error {
	newList := members != nil && (p.closed || !p.same(members))
	if !newList {
		members = nil
	}
	config, list, err := p.validated(c, members)
	switch {
	case err != nil:
		return err
	case p.closed:
		return ErrClosed
	case config.Subset != nil && len(p.branches) > 0:
		return errBranchedSubset
	}
	newConfig := c != nil && !config.Equal(p.config)
	if !newConfig && !newList {
		return nil
	}
	selector, newSubset := p.selector, !sameSubset(config.Subset, p.config.Subset)
	if newSubset {
		if selector, err = p.newSelector(config.Subset); err != nil {
			return err
		}
	}
	newReports := !sameReports(config.Reports, p.config.Reports)
	var built *picker.Members
	if newList && selector == nil && config.weightSource() == ListedWeights {
		if built, err = p.registry.Members(list, now); err != nil {
			return err
		}
	}
	listed, index := p.listed, p.index
	if newList {
		listed, index = p.entries(members)
	} else {
		list = endpointsOf(listed)
	}
	if selector != nil && (newList || newSubset) {
		if err := selectFrom(selector, listed, list, now); err != nil {
			return err
		}
	}
	if newList && now > p.sweepDue.Load() { // lists that come and go leave records behind
		p.sweep(now)
	}
	if newConfig {
		p.config = config
		p.registry.Learn(config.policy().Needs())
		p.setRules(now)
	}
	p.listed, p.index, p.selector = listed, index, selector
	if newReports {
		p.setReports(config.Reports)
	}
	if newList || newSubset || newReports {
		p.adopt(now, built)
	} else {
		p.rebuild()
	}
	return nil
}

// selectFrom has a subset selected from the list.
func selectFrom[T any](s *subset.Selector, listed []entry[T], list []Endpoint, now int64) error {
	if _, err := s.Update(subsetMembers(list)); err != nil {
		return err
	}
	s.Cover(now, func(i int) bool { return listed[i].down(now) })
	return nil
}

// validated returns the configuration that is meant and the list as endpoints, or all that
// is wrong with either. A list of which all become members is left to the registry, which
// validates it anyway.
func (p *Pool[T]) validated(c *Config, members []Member[T]) (config Config, list []Endpoint, err error) {
	config = p.config
	if c != nil {
		config = c.owned()
		err = config.Validate()
	}
	if members != nil {
		list = make([]Endpoint, len(members))
		for i, m := range members {
			list[i] = m.Endpoint
		}
		if err != nil || config.Subset != nil || config.weightSource() != ListedWeights {
			err = errors.Join(err, picker.Validate(list))
		}
	}
	return config, list, err
}

// same reports whether the list is the one in force, handles included, so that there is
// nothing to do. mu is held.
func (p *Pool[T]) same(members []Member[T]) bool {
	if !p.comparable || len(members) != len(p.listed) {
		return false
	}
	for i, m := range members {
		if e := &p.listed[i]; m.Endpoint != e.Endpoint || any(m.Handle) != any(e.Handle) {
			return false
		}
	}
	return true
}

func endpointsOf[T any](listed []entry[T]) []Endpoint {
	list := make([]Endpoint, len(listed))
	for i := range listed {
		list[i] = listed[i].Endpoint
	}
	return list
}
