package httpclient

import (
	"net"
	"net/http"
	"sync"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/probe"
)

// checks are the health checks of one group. A nil *checks makes none.
type checks struct {
	// Set at construction.
	pool   *evenkeel.Pool[*endpoint]
	runner *probe.Runner
	all    bool // endpoints are members: there are no subsets

	mu       sync.Mutex
	warnings []string
}

// proberOf returns what makes the probers of targets. They connect as requests do.
func proberOf(c evenkeel.HealthConfig, tmpl *http.Transport) func(Target, func(string)) (probe.Prober, error) {
	return func(target Target, warn func(string)) (probe.Prober, error) {
		o := probe.ProberOptions{Host: target.authority(), TLS: target.Scheme == "https", DialContext: tmpl.DialContext,
			TLSConfig: tmpl.TLSClientConfig, Protocols: tmpl.Protocols, OnWarning: warn}
		return probe.NewProber(c, o)
	}
}

// authority is the target as a Host header has it.
func (t Target) authority() string {
	if t.Scheme == "http" && t.Port == "80" || t.Scheme == "https" && t.Port == "443" {
		return hostOf(t.Host)
	}
	return net.JoinHostPort(t.Host, t.Port)
}

// hostOf puts the brackets around an IPv6 address.
func hostOf(host string) string {
	joined := net.JoinHostPort(host, "")
	return joined[:len(joined)-1]
}

// startChecks gives g its checks, if there are any.
func (f *fleet) startChecks(g *group) error {
	if f.newProber == nil {
		return nil
	}
	c := &checks{pool: g.pool, all: f.config.Subset == nil}
	prober, err := f.newProber(g.target, c.warn)
	if err != nil {
		return err
	}
	out := func(list []evenkeel.StateChange) { g.pool.SetStates(list) }
	c.runner, err = probe.NewRunner(probe.Options{Config: *f.config.Health, Prober: prober, Out: out, Rand: f.rand})
	if err == nil {
		g.checks = c
	}
	return err
}

// update makes the selected endpoints those that are checked. The group's mu is held.
func (c *checks) update(selected []*endpoint) {
	if c == nil {
		return
	}
	list := make([]probe.Endpoint, len(selected))
	for i, e := range selected {
		list[i] = probe.Endpoint{ID: e.addr, Addr: dialed(e.addr)}
	}
	c.runner.Update(list)
}

// holds reports whether new endpoints of the list are to be kept from requests until the checks have
// said that they have to wait: the pool is told of them first, and would use them at once. With
// subsets nobody is, as the pool would take who is not selected to be down.
func (c *checks) holds(list []location) bool {
	if c == nil || !c.all {
		return false
	}
	known := make([]probe.Endpoint, len(list))
	for i, l := range list {
		known[i].ID = l.String()
	}
	return c.runner.WouldWait(known)
}

// release ends what holds began.
func (c *checks) release(members []evenkeel.Member[*endpoint]) {
	var list []evenkeel.StateChange
	for _, m := range members {
		if m.NotReady {
			list = append(list, evenkeel.StateChange{ID: m.ID, State: evenkeel.Ready})
		}
	}
	if len(list) > 0 {
		c.pool.SetStates(list)
	}
}

// used says that there is a request.
func (c *checks) used() {
	if c != nil {
		c.runner.Used()
	}
}

// passed reports whether an endpoint has passed its check, or nobody is checked.
func (c *checks) passed() bool { return c == nil || c.runner.AnyHealthy() }

// warn takes note of a warning of the prober.
func (c *checks) warn(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warnings = append(c.warnings, text)
}

// show puts what is known into s.
func (c *checks) show(s *TargetStats) {
	if c == nil {
		return
	}
	s.Checks = c.runner.Details()
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Warnings = append(s.Warnings, c.warnings...)
}

// stop ends the checks, and waits for none.
func (c *checks) stop() {
	if c != nil {
		c.runner.Stop()
	}
}
