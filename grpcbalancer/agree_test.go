package grpcbalancer

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/httpclient"
	"github.com/evenkeel/evenkeel/internal/config"
)

// twins is a service with a gRPC and an HTTP server for each endpoint, on loopback. All
// clients know its endpoints by the same IDs.
type twins struct {
	ids  []string
	grpc map[string]string // ID → where the server is
	http map[string]string
}

func newTwins(t *testing.T, n int) *twins {
	t.Helper()
	s := &twins{grpc: map[string]string{}, http: map[string]string{}}
	for i := range n {
		id := fmt.Sprintf("10.1.0.%d:80", i+1)
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, id) }))
		t.Cleanup(web.Close)
		s.ids = append(s.ids, id)
		s.grpc[id], s.http[id] = start(t, "").addr, web.Listener.Addr().String()
	}
	return s
}

// dialer connects to the server that is where the ID says.
func dialer(where map[string]string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, id string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", where[id])
	}
}

// shuffled is the IDs in an order of client i's own.
func (s *twins) shuffled(i int) []string {
	r := rand.New(rand.NewPCG(20, uint64(i)))
	ids := slices.Clone(s.ids)
	r.Shuffle(len(ids), func(i, k int) { ids[i], ids[k] = ids[k], ids[i] })
	return ids
}

// byContext says that client i gives its keys to the context, where others have a header.
func byContext(i int) bool { return i%4 == 3 }

// overGRPC returns for each key the ID of the endpoint that client i's call with it went to.
func (s *twins) overGRPC(t *testing.T, i int, config string, keys [][]string) []string {
	c := dial(t, lbConfigOf(config), grpc.WithContextDialer(dialer(s.grpc)))
	c.resolver.InitialState(resolver.State{Endpoints: each(s.shuffled(i)...)})
	c.cc.Connect()
	c.waitReady(len(s.ids))
	ids := map[string]string{}
	for id, addr := range s.grpc {
		ids[addr] = id
	}
	var on []string
	for _, values := range keys {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if byContext(i) {
			ctx = evenkeel.WithKey(ctx, strings.Join(values, ","))
		} else {
			for _, v := range values {
				ctx = metadata.AppendToOutgoingContext(ctx, "X-User", v)
			}
		}
		var p peer.Peer
		if _, err := c.EmptyCall(ctx, &testgrpc.Empty{}, grpc.Peer(&p)); err != nil {
			t.Fatal(err)
		}
		cancel()
		on = append(on, ids[p.Addr.String()])
	}
	return on
}

// overHTTP is overGRPC for an http.Client.
func (s *twins) overHTTP(t *testing.T, i int, text string, keys [][]string) []string {
	c, _, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var list httpclient.Static
	for _, id := range s.shuffled(100 + i) {
		list = append(list, httpclient.Address{Addr: id})
	}
	dial := dialer(s.http)
	tr := &httpclient.Transport{Resolver: list, Config: c, Base: &http.Transport{
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return dial(ctx, addr) },
	}}
	defer tr.Close()
	client := &http.Client{Transport: tr}
	var on []string
	for _, values := range keys {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://svc.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if byContext(i) {
			req = req.WithContext(evenkeel.WithKey(req.Context(), strings.Join(values, ",")))
		} else {
			for _, v := range values {
				req.Header.Add("x-user", v)
			}
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		id, err := io.ReadAll(resp.Body)
		if resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		on = append(on, string(id))
	}
	return on
}

// hashedPolicies are the policies of the config that use keys.
func hashedPolicies(t *testing.T) (policies []string) {
	t.Helper()
	for _, name := range policyNames(t) {
		policy := `"` + name + `"`
		if c, _, err := config.Parse([]byte(`{"policy": ` + policy + `}`)); err == nil && c.UsesKey() {
			policies = append(policies, policy)
		}
	}
	if len(policies) == 0 {
		t.Fatal("no policy uses keys")
	}
	return policies
}

// Twenty clients of each kind, each with the list in an order of its own and one config for
// all, send every key to one endpoint, wherever they have it.
func TestTwentyClientsOfBothKindsFindEachKeyOnTheSameEndpoint(t *testing.T) {
	s := newTwins(t, 10)
	keys := [][]string{{"a", "b"}, {"a,b"}, {"b", "a"}, {" "}, {"~!@#$%^&*()"}, {strings.Repeat("k", 100_000)}}
	for i := range 60 {
		keys = append(keys, []string{fmt.Sprint("user-", i)})
	}
	for _, policy := range hashedPolicies(t) {
		text := `{"policy": ` + policy + `, "keys": [{"header": "x-user"}, {"context": true}]}`
		var want []string
		for i := range 20 {
			t.Run(fmt.Sprintf("%s/client=%d", strings.Trim(policy, `"`), i), func(t *testing.T) {
				byGRPC, byHTTP := s.overGRPC(t, i, text, keys), s.overHTTP(t, i, text, keys)
				if want == nil {
					want = byGRPC
				}
				for k := range keys {
					if byGRPC[k] != want[k] || byHTTP[k] != want[k] {
						t.Errorf("%.30q: on %s by gRPC, on %s by HTTP, want %s", keys[k], byGRPC[k], byHTTP[k], want[k])
					}
				}
			})
		}
		if want[0] != want[1] {
			t.Errorf("%s: two values and the same joined are on %s and %s, want one endpoint", policy, want[0], want[1])
		}
		if n := len(slices.Compact(slices.Sorted(slices.Values(want)))); n < 8 {
			t.Errorf("%s: all keys are on %d of 10 endpoints", policy, n)
		}
	}
}
