package grpcbalancer

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/evenkeel/evenkeel"
)

// Share says whether channels that are open at the same time share what they know, from now on; a process begins with
// false. Turn it on before channels are made: a policy joins when it gets its first endpoints, and what has been joined
// stays so when it is turned off.
//
// A program often has several channels to one service: one for each of its modules, or several to get around the
// limit of streams that a connection may have. Each alone sees a part of what the endpoints have in flight, and meets
// each slow or failing one by itself. Those that share, see the calls in flight of all of them, and use the same
// latencies, failures, ejections, load reports and weights of them; "limit" and "per_endpoint" bound all of them together, and
// caps on ejections are of all their endpoints. Each keeps its connections, its health checks, and so its own
// idea of who can be picked now, and of panic; and its round-robin position. One that joins takes up at once
// what the others know.
//
// Channels share if they have the same target, authority, policy name and config, and in their first list an
// endpoint in common: so the parts of one channel under a parent (xDS localities) do not mix. That the same
// address is the same server, whatever dialers and credentials they have, is taken for granted. With a "subset" nothing is shared. A new
// config counts for all as soon as one of them is told of it; one that is then told its old one again leaves the
// others, and shares with those of that config from there on: its connections stay, what it
// knew and what it has in flight is left behind.
//
// What is shared is kept once, for as long as one of its channels is open, and after that if [Remember] says so. At
// most 64 channels share; the next one begins with others. It costs no pick anything, and no goroutine; a new list costs O(n) for each
// channel that shares. Channels to different targets never share, nor do processes.
func Share(on bool) { commons.on.Store(on) }

// maxSharers bounds how many channels share a pool: a new list, which each of them gets, costs O(n) for each of them.
const maxSharers = 64

// commons are those of the process.
var commons commonsOf

// commonsOf has what open channels share.
type commonsOf struct {
	on atomic.Bool

	mu    sync.Mutex
	known map[commonKey][]*common
}

type commonKey struct {
	memoryKey
	authority string
}

// common is a pool that policies have branches of. All but its keepsake's pool is guarded by the commons' mu.
type common struct {
	*keepsake
	key    commonKey
	config evenkeel.Config // in force: the last that one of them was told
	users  int
}

// errApart says that a policy is to leave those it shares with.
var errApart = errors.New("the config differs from that of the channels that this one shares with")

// join returns a branch of the pool of those who have this key, config and one of these endpoints, of a new one if there
// is nobody.
func (s *commonsOf) join(key commonKey, c evenkeel.Config, next []keyed, found func() (*keepsake, error)) (*keepsake, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.known[key], func(g *common) bool {
		return g.users < maxSharers && g.config.Equal(c) && g.has(next)
	})
	if at >= 0 {
		return s.known[key][at].branch()
	}
	k, err := found()
	if err != nil {
		return nil, err
	}
	if err := k.pool.SetConfig(c); err != nil { // one that was remembered may have another
		k.pool.Close()
		return nil, err
	}
	g := &common{keepsake: k, key: key, config: c}
	b, err := g.branch()
	if err != nil {
		k.pool.Close()
		return nil, err
	}
	if s.known == nil {
		s.known = map[commonKey][]*common{}
	}
	s.known[key] = append(s.known[key], g)
	return b, nil
}

// has reports whether one of these endpoints is known.
func (g *common) has(next []keyed) bool {
	known := make(map[string]bool)
	for _, e := range g.pool.Stats().Endpoints {
		known[e.ID] = true
	}
	return slices.ContainsFunc(next, func(k keyed) bool { return known[k.key] })
}

// branch returns one for another user.
func (g *common) branch() (*keepsake, error) {
	pool, err := g.pool.Branch()
	if err != nil {
		return nil, err
	}
	g.users++
	return &keepsake{pool: pool, tell: new(atomic.Pointer[warnings]), refused: g.refused, common: g}, nil
}

// replace gives a user's branch its config and list. told is the config that this user had before, nil if it had none.
// It returns errApart, and nothing changed, if the user's config is one that the others do not have any more.
func (s *commonsOf) replace(k *keepsake, told *evenkeel.Config, c evenkeel.Config, members []evenkeel.Member[*endpoint]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := k.common
	if c.Subset != nil || g.users > 1 && !c.Equal(g.config) && (told == nil || c.Equal(*told)) {
		return errApart
	}
	err := k.pool.Replace(c, members)
	if err == nil {
		g.config = c
	}
	return err
}

// leave closes a user's branch, and returns what was shared if it was the last one's; nil otherwise.
func (s *commonsOf) leave(k *keepsake) *keepsake {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := k.common
	k.pool.Close()
	if g.users--; g.users > 0 {
		return nil
	}
	rest := slices.DeleteFunc(s.known[g.key], func(o *common) bool { return o == g })
	if s.known[g.key] = rest; len(rest) == 0 {
		delete(s.known, g.key)
	}
	return g.keepsake
}

// refusals is how many calls that found no place within a limit were counted: once, though several may look.
type refusals struct{ counted atomic.Uint64 }

// news returns how many more there are.
func (r *refusals) news(now uint64) uint64 {
	for {
		was := r.counted.Load()
		if now <= was { // who looked later was faster
			return 0
		}
		if r.counted.CompareAndSwap(was, now) {
			return now - was
		}
	}
}
