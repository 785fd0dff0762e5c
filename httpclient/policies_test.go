package httpclient

import (
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/evenkeel/evenkeel"
)

const (
	// inTurn is how many requests are sent one after the other.
	inTurn = 400
	// byChance is 4.5 standard deviations of the binomial with a quarter of those.
	byChance = 39
	anyShare = inTurn
)

// everyPolicy is each policy of the configuration with what the second of two endpoints,
// of weights 1 and 3, gets of requests that are sent one after the other.
var everyPolicy = []struct {
	policy string
	heavy  float64
	within float64
}{
	{`"round_robin"`, 200, 1},
	{`"random"`, 200, 45},
	{`"weighted_round_robin"`, 300, 2},
	{`"smooth_weighted_round_robin"`, 300, 1},
	{`"edf"`, 300, 2},
	{`"weighted_random"`, 300, byChance},
	{`"weighted_least_request"`, 300, 2},
	{`{"weighted_least_request": {"active_request_bias": 0}}`, 300, 2},
	{`"adaptive"`, 0, anyShare},
	{`"p2c"`, 0, anyShare},
	{`{"p2c": {"signal": "in_flight"}}`, 300, byChance}, // all are idle: the draw alone
	{`{"p2c": {"signal": "latency"}}`, 0, anyShare},
	{`{"p2c": {"signal": "peak_hold"}}`, 0, anyShare},
	{`{"p2c": {"signal": "log_mean"}}`, 0, anyShare},
	{`{"p2c": {"signal": "least_time"}}`, 0, anyShare},
	{`{"p2c": {"signal": "peak_ewma"}}`, 0, anyShare},
	{`{"p2c": {"signal": {"peak_ewma": {"form": "linkerd", "tau": "1s"}}}}`, 0, anyShare},
	{`{"p2c": {"choices": 4}}`, 0, anyShare},
	{`"weighted"`, 300, 0},
	{`"least"`, inTurn, 0}, // it costs a third, while both are idle
	{`{"least": {"signal": "latency"}}`, 0, anyShare},
	{`"maglev"`, 0, anyShare}, // without keys: the fallback
	{`{"ring_hash": {"fallback": "round_robin"}}`, 200, 1},
	{`{"rendezvous": {"fallback": "weighted_round_robin", "unbounded": true}}`, 300, 2},
}

func TestEveryPolicyServesOverRealConnections(t *testing.T) {
	for _, name := range policyNames(t) {
		covered := false
		for _, c := range everyPolicy {
			covered = covered || strings.Contains(c.policy, `"`+name+`"`)
		}
		if !covered {
			t.Errorf("the table has no %s", name)
		}
	}
	for i, c := range everyPolicy {
		t.Run(c.policy, func(t *testing.T) {
			s := serve(t, 2, hello, plain)
			tr := &Transport{
				Resolver: Static{{Addr: s[0].addr, Weight: evenkeel.WeightOf(1)}, {Addr: s[1].addr, Weight: evenkeel.WeightOf(3)}},
				Config:   parsed(t, `{"policy": `+c.policy+`}`),
				rand:     shared(rand.New(rand.NewPCG(26, uint64(i)))),
			}
			cl := client(t, tr)
			for range inTurn {
				fetch(t, cl, svc)
			}
			if got := float64(s[1].requests.Load()); math.Abs(got-c.heavy) > c.within {
				t.Errorf("the heavy one got %v of %d, want %v ± %v", got, inTurn, c.heavy, c.within)
			}
			fetchEightAtATime(t, cl, 80)
			for _, s := range s {
				if s.requests.Load() == 0 {
					t.Errorf("%s got nothing", s.addr)
				}
			}
			for _, e := range one(t, tr).Endpoints {
				if e.InFlight != 0 || e.Picks == 0 || e.Success != 1 {
					t.Errorf("at rest: %+v", e)
				}
			}
		})
	}
}

// fetchEightAtATime sends n requests, of which eight are always in flight.
func fetchEightAtATime(t *testing.T, c *http.Client, n int) {
	t.Helper()
	var open [8]*http.Response
	for i := range n + len(open) {
		if r := open[i%len(open)]; r != nil {
			r.Body.Close()
		}
		if i >= n {
			continue
		}
		resp, err := c.Do(request(t, http.MethodGet, svc, nil))
		if err != nil {
			t.Fatal(err)
		}
		open[i%len(open)] = resp
	}
}

// shared makes a source of randomness safe for concurrent use.
func shared(r *rand.Rand) func() uint64 {
	var mu sync.Mutex
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return r.Uint64()
	}
}
