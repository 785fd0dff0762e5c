package httpclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/limit"
	"github.com/evenkeel/evenkeel/internal/probe"
)

const (
	defaultMaxTargets = 256
	limitMaxTargets   = 1 << 16
	defaultTargetIdle = 15 * time.Minute
)

// fleet is a Transport at work: its settings, checked, and the groups of the targets
// in use. Requests read the map of groups with one atomic load; who changes it holds
// mu and publishes a copy.
type fleet struct {
	// Set at construction.
	config     evenkeel.Config
	keys       *affinity // nil: not needed
	resolver   Resolver
	newLeaf    func(target Target, addr string) leaf
	newProber  func(target Target, warn func(string)) (probe.Prober, error) // nil: no checks
	rand       func() uint64
	rules      *rules
	hedge      *hedging
	budget     limit.BudgetConfig
	classify   func(*http.Response, error) evenkeel.Outcome
	observer   Observer
	balance    func(*url.URL) bool // nil: all
	others     http.RoundTripper   // for what is not balanced; nil: there is nothing such
	maxTargets int
	targetIdle time.Duration
	aging      aging
	heals      bool
	ctx        context.Context // done when the fleet is closed
	cancel     context.CancelFunc

	news chan *group // groups with a new list, for the sweeper

	groups atomic.Pointer[map[Target]*group]
	usual  atomic.Pointer[usual] // set under mu, and only to a group in groups

	mu     sync.Mutex
	closed bool
}

// usual is a group with the URL that it was asked for by. Most Transports have one
// target, and comparing two strings costs a fraction of looking them up.
type usual struct {
	scheme, host string
	group        *group
}

// newFleet checks the settings of t, all of them, and starts the fleet's own
// goroutine.
func newFleet(t *Transport) (*fleet, error) {
	f := &fleet{
		config:     t.Config,
		resolver:   t.Resolver,
		newLeaf:    t.newLeaf,
		rand:       t.rand,
		maxTargets: cmp.Or(t.MaxTargets, defaultMaxTargets),
		targetIdle: cmp.Or(t.TargetIdleTimeout, defaultTargetIdle),
		heals:      t.HealLeaks,
	}
	if f.resolver == nil {
		f.resolver = &DNS{}
	}
	tmpl, err := template(t.Base)
	problems := []error{checkConfig(t.Config), err}
	if v, ok := f.resolver.(validator); ok {
		problems = append(problems, v.Validate())
	}
	if f.maxTargets < 1 || f.maxTargets > limitMaxTargets {
		problems = append(problems, fmt.Errorf("httpclient: MaxTargets is %d, want 0 to %d", f.maxTargets, limitMaxTargets))
	}
	if f.targetIdle < sweepEvery {
		problems = append(problems, fmt.Errorf("httpclient: TargetIdleTimeout is %v, want 0 or at least %v", f.targetIdle, sweepEvery))
	}
	f.aging, err = agingOf(t, tmpl)
	problems = append(problems, err, f.repeat(t))
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	f.passOn(t, tmpl)
	f.keys = affinityOf(t.Key, t.Config)
	if f.newLeaf == nil {
		f.newLeaf = func(_ Target, addr string) leaf { return fixedDial(tmpl, addr) }
		if t.Config.DrainTimeout > 0 || f.aging.limit > 0 {
			f.newLeaf = func(_ Target, addr string) leaf { return trackedDial(tmpl, addr) }
		}
	}
	if t.Config.Health != nil {
		f.newProber = proberOf(*t.Config.Health, tmpl)
	}
	f.news = make(chan *group, newsAtOnce)
	f.groups.Store(&map[Target]*group{})
	f.ctx, f.cancel = context.WithCancel(context.Background())
	go f.sweep()
	return f, nil
}

// repeat takes over what t says of retries and hedges.
func (f *fleet) repeat(t *Transport) error {
	var retry RetryConfig
	if t.Retry != nil {
		retry = *t.Retry
	}
	problems := []error{retry.Validate()}
	if t.Hedge != nil {
		problems = append(problems, t.Hedge.Validate())
	}
	f.rules, f.budget, f.hedge = retry.rules(), retry.Budget.limits(), t.Hedge.hedging()
	f.classify, f.observer = t.Classify, t.Observer
	return errors.Join(problems...)
}

// passOn takes over what t says of hosts that are not balanced.
func (f *fleet) passOn(t *Transport, tmpl *http.Transport) {
	if t.Balance == nil {
		return
	}
	f.balance, f.others = t.Balance, t.PassThrough
	if f.others == nil {
		f.others = tmpl.Clone()
	}
}

// closeOthers closes the idle connections to hosts that are not balanced.
func (f *fleet) closeOthers() {
	if c, ok := f.others.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// checkConfig reports what a pool would not take. Validate looks up no index of a subset.
func checkConfig(c evenkeel.Config) error {
	if c.Subset == nil {
		return c.Validate()
	}
	_, err := evenkeel.NewPool[*endpoint](c, evenkeel.Options{})
	return err
}

// group returns the group of u's target, which is made on first use.
func (f *fleet) group(u *url.URL) (*group, error) {
	if l := f.usual.Load(); l != nil && u != nil && u.Host == l.host && u.Scheme == l.scheme {
		return l.group, nil
	}
	target, err := targetOf(u)
	if err != nil {
		return nil, err
	}
	if g := (*f.groups.Load())[target]; g != nil {
		// Nobody waits for it: the next request may have more luck.
		if f.usual.Load() == nil && f.mu.TryLock() {
			f.remember(u, g)
			f.mu.Unlock()
		}
		return g, nil
	}
	if err := target.validate(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrClosed
	}
	groups := *f.groups.Load()
	if g := groups[target]; g != nil {
		return g, nil
	}
	now := time.Now()
	if len(groups) >= f.maxTargets && !f.evictOne(now) {
		return nil, fmt.Errorf("%w: no room for %v", ErrTooManyTargets, target)
	}
	g, err := f.newGroup(target, now)
	if err != nil {
		return nil, err
	}
	f.publish(func(groups map[Target]*group) { groups[target] = g })
	f.remember(u, g)
	return g, nil
}

// remember makes g the usual group if there is none, and g is still in use. mu is held.
func (f *fleet) remember(u *url.URL, g *group) {
	if f.usual.Load() == nil && (*f.groups.Load())[g.target] == g {
		f.usual.Store(&usual{scheme: u.Scheme, host: u.Host, group: g})
	}
}

// newGroup makes a group and starts its Watch.
func (f *fleet) newGroup(target Target, now time.Time) (*group, error) {
	pool, err := evenkeel.NewPool[*endpoint](f.config, evenkeel.Options{Rand: f.rand})
	if err != nil {
		return nil, err
	}
	budget, err := limit.NewBudget(f.budget)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(f.ctx)
	g := &group{
		target:    target,
		pool:      pool,
		keys:      f.keys,
		reports:   reportingOf(f.config),
		newLeaf:   func(addr string) leaf { return f.newLeaf(target, addr) },
		hints:     make(chan struct{}, 1),
		news:      f.news,
		settled:   make(chan struct{}),
		cancel:    cancel,
		idleSince: now,
		rules:     f.rules,
		hedge:     f.hedge,
		budget:    budget,
		origin:    now,
		classify:  f.classify,
		observer:  f.observer,
		heals:     f.heals,
		leaving:   leaving{limit: f.config.DrainTimeout, origin: now, all: map[string]*endpoint{}},
		ages:      ages{aging: f.aging, ctx: ctx},
	}
	if err := f.startChecks(g); err != nil {
		cancel()
		return nil, err
	}
	go g.watch(ctx, f.resolver)
	return g, nil
}

// publish makes a changed copy of the map the one that requests see. mu is held.
func (f *fleet) publish(change func(map[Target]*group)) {
	groups := maps.Clone(*f.groups.Load())
	change(groups)
	f.groups.Store(&groups)
}

// evictOne closes the group that has been without requests for longest. mu is held.
func (f *fleet) evictOne(now time.Time) bool {
	f.note(now)
	byIdle := slices.SortedFunc(maps.Values(*f.groups.Load()), func(a, b *group) int {
		return a.idleSince.Compare(b.idleSince)
	})
	i := slices.IndexFunc(byIdle, func(g *group) bool { return !g.busy() })
	if i < 0 {
		return false
	}
	f.evict(byIdle[i])
	return true
}

// evict closes a group. A request that has got hold of it and not picked yet finds its
// pool closed, and asks for the target again. mu is held.
func (f *fleet) evict(g *group) {
	f.publish(func(groups map[Target]*group) { delete(groups, g.target) })
	f.forget(g)
	g.close()
}

// forget makes room for another usual group, if g is it. mu is held.
func (f *fleet) forget(g *group) {
	if l := f.usual.Load(); l != nil && l.group == g {
		f.usual.Store(nil)
	}
}

// note takes down which groups had requests. mu is held.
func (f *fleet) note(now time.Time) {
	for _, g := range *f.groups.Load() {
		if g.used.Swap(false) {
			g.idleSince = now
		}
	}
}

// evictIdle closes the groups that have been without requests for too long. It runs once
// in sweepEvery.
func (f *fleet) evictIdle(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.usual.Store(nil) // the next request shows which target is now
	f.note(now)
	for _, g := range *f.groups.Load() {
		if now.Sub(g.idleSince) >= f.targetIdle && !g.busy() {
			f.evict(g)
		}
	}
}

// close ends everything. It does not wait for a resolver, which may be slow to return
// or be the caller.
func (f *fleet) close() {
	f.mu.Lock()
	f.closed = true
	groups := *f.groups.Load()
	f.publish(func(groups map[Target]*group) { clear(groups) })
	f.usual.Store(nil)
	f.mu.Unlock()
	f.cancel()
	f.closeOthers()
	for _, g := range groups {
		g.close()
	}
}
