package grpcbalancer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/evenkeel/evenkeel"
)

// sharers are channels to one target, with what they have in flight by a count of the test's own.
type sharers struct {
	t        *testing.T
	rnd      *rand.Rand
	configs  []string
	channels [3]*rig
	open     []sharedCall
}

// sharedCall is an attempt that has not ended.
type sharedCall struct {
	pool string // which one it is counted in
	addr string
	done func(balancer.DoneInfo)
}

// poolOf tells shared pools apart.
func poolOf(p *policy) string { return fmt.Sprintf("%p", p.keepsake.common) }

func (s *sharers) list() []resolver.Endpoint {
	list := each("a") // so that all have one in common
	for _, name := range []string{"b", "c", "d", "e"} {
		if s.rnd.IntN(4) > 0 {
			list = append(list, at(name))
		}
	}
	s.rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func (s *sharers) restart(i int) {
	r := newSeededRig(s.t, s.configs[s.rnd.IntN(len(s.configs))], s.rnd.Uint64)
	r.up(s.list()...)
	s.channels[i] = r
}

// step does something to one of them.
func (s *sharers) step() {
	i := s.rnd.IntN(len(s.channels))
	r := s.channels[i]
	switch k := s.rnd.IntN(100); {
	case k < 45:
		s.pick(r)
	case k < 75 && len(s.open) > 0:
		at := s.rnd.IntN(len(s.open))
		s.open[at].done(outcomes[s.rnd.IntN(len(outcomes))])
		s.open = append(s.open[:at], s.open[at+1:]...)
	case k < 80:
		c := r.conn(r.list[s.rnd.IntN(len(r.list))].Addresses[0].Addr)
		c.becomes(connectivity.TransientFailure, errors.New("gone"))
		r.settle()
	case k < 85:
		c := r.conn(r.list[s.rnd.IntN(len(r.list))].Addresses[0].Addr)
		c.becomes(connectivity.Ready, nil)
		r.settle()
	case k < 90:
		r.up(s.list()...)
	case k < 92:
		r.config = parse(s.t, s.configs[s.rnd.IntN(len(s.configs))])
		r.up(r.list...)
	case k < 94:
		r.policy.Close()
		s.restart(i)
	default:
		time.Sleep(time.Duration(s.rnd.IntN(2000)) * time.Millisecond)
		r.settle()
	}
}

func (s *sharers) pick(r *rig) {
	result, err := r.pick()
	if err != nil {
		return // its connections are all gone, or it is overloaded
	}
	c := result.SubConn.(*fakeConn)
	if c.channel != r.fakeChannel || c.shut || r.conn(c.addr) != c {
		s.t.Fatalf("a call goes to %s by a connection that is not the channel's", c.addr)
	}
	s.open = append(s.open, sharedCall{poolOf(r.policy), c.addr, result.Done})
}

// check compares what all have in flight where they share.
func (s *sharers) check(step int) {
	inFlight := map[[2]string]int64{}
	for _, a := range s.open {
		inFlight[[2]string{a.pool, a.addr}]++
	}
	known := map[string]bool{}
	for _, r := range s.channels {
		known[poolOf(r.policy)] = true
		stats := r.policy.pool.Stats()
		for _, e := range stats.Endpoints {
			if want := inFlight[[2]string{poolOf(r.policy), e.ID}]; e.InFlight != want {
				s.t.Fatalf("step %d: %s has %d in flight, want %d", step, e.ID, e.InFlight, want)
			}
			connected := r.policy.children[e.ID].is(connectivity.Ready)
			if ready := e.State == evenkeel.Ready; ready != connected {
				s.t.Fatalf("step %d: %s is %v, and connected: %v", step, e.ID, e.State, connected)
			}
		}
	}
	commons.mu.Lock()
	defer commons.mu.Unlock()
	users := 0
	for _, list := range commons.known {
		for _, g := range list {
			users += g.users
			if !known[fmt.Sprintf("%p", g)] {
				s.t.Fatalf("step %d: a pool is kept that no channel has", step)
			}
		}
	}
	if users != len(s.channels) {
		s.t.Fatalf("step %d: %d users of %d channels", step, users, len(s.channels))
	}
}

// Whatever the channels do, in whatever order, and with which configs: picks go by each one's own connections,
// counts are of all who share, and nothing is kept that nobody has.
func TestChannelsThatShareUnderRandomOrders(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			share(t)
			s := &sharers{t: t, rnd: rand.New(rand.NewPCG(seed, 81)), configs: []string{
				`{"limit": {"disabled": true}}`, `{"limit": {"disabled": true}, "policy": "round_robin"}`,
				`{"limit": {"disabled": true}, "policy": "maglev", "keys": [{"path": true}]}`,
			}}
			for i := range s.channels {
				s.restart(i)
			}
			for step := range 600 {
				s.step()
				for _, r := range s.channels {
					r.passWindow()
				}
				s.check(step)
			}
			for _, a := range s.open {
				a.done(succeeded)
			}
			s.open = nil
			s.check(-1)
			for _, r := range s.channels {
				r.policy.Close()
			}
		})
	}
}

// Real channels to one target that come and go while they are used.
func TestRealChannelsThatShareComeAndGo(t *testing.T) {
	Share(true)
	defer Share(false)
	servers := fleet(t, 3)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 4 {
				c := dial(t, lbConfigOf(`{}`))
				c.resolver.InitialState(endpointsOf(servers...))
				for range 30 {
					if err := c.call(); err != nil {
						t.Error(err)
					}
				}
				_ = c.cc.Close()
			}
		})
	}
	all.Wait()
	eventually(t, "nothing is shared any more", func() bool {
		commons.mu.Lock()
		defer commons.mu.Unlock()
		return len(commons.known) == 0
	})
}

// What one real channel learns of a slow and of a failing server, another one knows with its first call; and the
// streams of one are seen by the other.
func TestRealChannelsThatShare(t *testing.T) {
	Share(true)
	defer Share(false)
	servers := fleet(t, 4)
	slow := servers[0]
	release := make(chan struct{})
	slow.answers(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		select {
		case <-release:
		case <-ctx.Done():
		}
		return nil
	})
	one := connect(t, lbConfigOf(`{}`), servers)
	one.calls(40)
	met := slow.calls.Load()
	if met == 0 {
		t.Fatal("the first channel never met the slow server")
	}
	two := connect(t, lbConfigOf(`{}`), servers)
	two.calls(60)
	if n := slow.calls.Load() - met; n > 1 {
		t.Errorf("the second channel sent %d of its first 60 calls to the slow server", n)
	}
	close(release)

	least := lbConfigOf(`{"policy": "least"}`)
	three := connect(t, least, servers[1:2])
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range 10 {
		three.open(ctx)
	}
	before := servers[1].calls.Load()
	four := connect(t, least, servers[1:])
	four.calls(20)
	if n := servers[1].calls.Load() - before; n != 0 {
		t.Errorf("%d of 20 calls went where another channel has ten streams", n)
	}
	_ = three.cc.Close()
	four.calls(20)
	cancel()
	_ = one.cc.Close()
	two.calls(10)
}
