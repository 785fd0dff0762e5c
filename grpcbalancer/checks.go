package grpcbalancer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strconv"

	"google.golang.org/grpc/resolver"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/health"
	"github.com/evenkeel/evenkeel/internal/probe"
)

// checks are the active health checks of a policy's endpoints. It is immutable.
type checks struct {
	config evenkeel.HealthConfig
	runner *probe.Runner // is told by watch, or makes the checks itself
	watch  *watcher      // nil unless endpoints are asked on their own connections
	term   uint64        // the runner's, from 1
}

// checkHealth reports what gRPC cannot do of it.
func checkHealth(h *evenkeel.HealthConfig) error {
	if h == nil || h.Protocol != evenkeel.CheckGRPC {
		return nil
	}
	var problems []error
	if h.Port != 0 {
		problems = append(problems, fmt.Errorf(
			"grpcbalancer: Health.Port is %d, want 0 with CheckGRPC: endpoints are asked on the connections that calls use", h.Port))
	}
	if h.Host != "" {
		problems = append(problems, fmt.Errorf(
			"grpcbalancer: Health.Host is %q, want none with CheckGRPC: endpoints are asked by the authority that calls have", h.Host))
	}
	return errors.Join(problems...)
}

// setHealth puts checks in force; nil are none. What is known of endpoints stays while there are any.
// Called under calls.
func (p *policy) setHealth(c *evenkeel.HealthConfig) error {
	old := p.checks
	if c == nil && old == nil || c != nil && old != nil && reflect.DeepEqual(*c, old.config) {
		return nil
	}
	var next *checks
	if c != nil {
		var err error
		if next, err = p.newChecks(*c); err != nil {
			return err
		}
	}
	p.checks = next
	p.used.Store(nil)
	if next != nil && next.watch == nil {
		p.used.Store(next.runner)
	}
	if old != nil && (next == nil || next.runner != old.runner) {
		old.runner.Stop()
	}
	p.turnOver(next)
	p.check(slices.Collect(maps.Values(p.children))) // before anybody follows them, and has something to say
	return nil
}

// newChecks returns the checks that c asks for. Those that are in force change to that if they are of the
// same kind, and are to be stopped otherwise. Called under calls.
func (p *policy) newChecks(c evenkeel.HealthConfig) (k *checks, err error) {
	k = &checks{config: c}
	timing, prober := c, probe.Prober(nil)
	watched := c.Protocol == evenkeel.CheckGRPC
	if watched {
		timing.UseUnchecked = true // who is to wait is the watcher's to say: it knows of connections
	} else if prober, err = p.newProber(c); err != nil {
		return nil, err
	}
	if old := p.checks; old != nil && (old.watch != nil) == watched {
		k.runner, k.term = old.runner, old.term
		err = k.runner.SetConfig(timing, prober)
	} else {
		p.terms++
		term := p.terms
		k.term = term
		k.runner, err = probe.NewRunner(probe.Options{Config: timing, Prober: prober, Rand: p.random,
			Out: func(news []evenkeel.StateChange) { p.checked(term, news) }})
	}
	if err != nil {
		return nil, err
	}
	if watched {
		wait := health.Config{Interval: c.Interval, Timeout: c.Timeout}.WithDefaults().Timeout
		k.watch = &watcher{policy: p, runner: k.runner, service: c.Service, wait: wait, useUnheard: c.UseUnchecked}
	}
	return k, nil
}

// newProber returns what makes checks beside the connections of calls, dialing as the channel does.
func (p *policy) newProber(c evenkeel.HealthConfig) (probe.Prober, error) {
	o := probe.ProberOptions{Host: p.opts.Authority, OnWarning: p.warnings.addOnce}
	if dial := p.opts.Dialer; dial != nil {
		o.DialContext = func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr) }
	}
	return probe.NewProber(c, o)
}

// check makes these endpoints the ones that are checked: those that are selected. Called under calls,
// before their children are called.
func (p *policy) check(endpoints []*endpoint) {
	k := p.checks
	if k == nil {
		return
	}
	list := make([]probe.Endpoint, 0, len(endpoints))
	var unchecked []evenkeel.StateChange
	for _, e := range endpoints {
		addr := firstAddr(e.listed)
		if k.watch == nil && !p.canDial(addr, k.config.Port) {
			p.warnings.add("address", fmt.Sprintf(
				"grpcbalancer: Health does nothing for endpoints whose address is no host and port: %q is one", addr))
			unchecked = append(unchecked, evenkeel.StateChange{ID: e.key, State: evenkeel.Ready, Source: evenkeel.Checks})
			continue
		}
		list = append(list, probe.Endpoint{ID: e.key, Addr: addr})
	}
	k.runner.Update(list)
	if len(unchecked) > 0 { // what other checks have said of them, nobody would take back
		p.mu.Lock()
		p.pool.SetStates(unchecked)
		p.wake()
		p.mu.Unlock()
	}
}

// firstAddr is where an endpoint with several addresses is checked.
func firstAddr(e resolver.Endpoint) string { return e.Addresses[0].Addr }

// canDial reports whether a prober can connect to the address: the channel's own dialer may know any,
// but a port of its own needs one that it takes the place of. A "unix:/path" looks like one.
func (p *policy) canDial(addr string, port int) bool {
	if p.opts.Dialer != nil && port == 0 {
		return true
	}
	_, text, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(text, 10, 16)
	}
	return err == nil
}

// checked takes what the checks of a term have come to. Each Runner calls it by turns.
func (p *policy) checked(term uint64, news []evenkeel.StateChange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || term != p.term {
		return
	}
	p.pool.SetStates(news)
	p.wake()
	if p.subsetting && slices.ContainsFunc(news, func(c evenkeel.StateChange) bool { return c.State == evenkeel.Failing }) {
		p.sweepAnew(len(p.list)) // others may have to be connected in its place
	}
}

// turnOver begins the term of k: what other checks have still to say counts no more. Without any, all is
// taken back that they have said.
func (p *policy) turnOver(k *checks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k != nil {
		p.term = k.term
		return
	}
	p.term = 0
	news := make([]evenkeel.StateChange, len(p.list))
	for i, e := range p.list {
		news[i] = evenkeel.StateChange{ID: e.key, State: evenkeel.Ready, Source: evenkeel.Checks}
	}
	p.pool.SetStates(news)
	p.wake()
}

// refollow has those follow connections who are to do so now. Called under calls.
func (p *policy) refollow() {
	list := slices.Clone(p.also)
	if p.checks != nil && p.checks.watch != nil {
		list = append(list, p.checks.watch)
	}
	if p.reports != nil {
		list = append(list, p.reports)
	}
	if !slices.Equal(list, p.followers) {
		p.follow(list)
	}
}
