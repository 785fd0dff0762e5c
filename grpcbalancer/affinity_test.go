package grpcbalancer

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/metadata"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/hash"
	"github.com/evenkeel/evenkeel/internal/testcost"
	"github.com/evenkeel/evenkeel/picker"
)

// byKey is a policy of a user's own that sends a key to the member of that number, and what
// has none to the last.
type byKey struct{ picker.Random }

func (byKey) UsesKey() bool { return true }

// Build implements picker.Policy.
func (p byKey) Build(*picker.Members, picker.Picker) picker.Picker { return p }

// Pick implements picker.Picker.
func (byKey) Pick(s *picker.Snapshot, r picker.Request, _ int64) int {
	if !r.HasKey {
		return s.At(s.Len() - 1)
	}
	return s.At(int(r.Key % uint64(s.Len()-1)))
}

// affine is a config of byKey.
func affine(keys ...evenkeel.Key) evenkeel.Config {
	return evenkeel.Config{Policy: byKey{}, Keys: keys}
}

// newAffineRig is newRig with a policy that has c for its base.
func newAffineRig(t *testing.T, c evenkeel.Config) *rig {
	t.Helper()
	r := newRig(t, "")
	r.policy.base = c
	r.config = nil
	return r
}

func callWith(ctx context.Context) balancer.PickInfo {
	return balancer.PickInfo{FullMethodName: "/pkg.Service/Method", Ctx: ctx}
}

func sending(pairs ...string) context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), pairs...)
}

func TestKeyIsTheFirstThatIsNotEmpty(t *testing.T) {
	header, path, ctx := evenkeel.Key{Header: "X-User"}, evenkeel.Key{Path: true}, evenkeel.Key{Context: true}
	tenant := evenkeel.Key{Header: "x-tenant"}
	for _, c := range []struct {
		name string
		ctx  context.Context
		keys []evenkeel.Key
		want string
	}{
		{"nothing", context.Background(), []evenkeel.Key{header, ctx}, ""},
		{"no context", nil, []evenkeel.Key{header, ctx}, ""},
		{"no context, but the path", nil, []evenkeel.Key{header, ctx, path}, "/pkg.Service/Method"},
		{"no keys named", evenkeel.WithKey(context.Background(), "ctx"), nil, "ctx"},
		{"no keys named, none there", context.Background(), nil, ""},
		{"header", sending("x-user", "alice"), []evenkeel.Key{header, path}, "alice"},
		{"header in any case", sending("X-USER", "alice"), []evenkeel.Key{header, path}, "alice"},
		{"header of a map that nobody brought in form",
			metadata.NewOutgoingContext(context.Background(), metadata.MD{"X-User": {"alice"}}), []evenkeel.Key{header}, "alice"},
		{"an empty header is none", sending("x-user", ""), []evenkeel.Key{header, path}, "/pkg.Service/Method"},
		{"values joined", sending("x-user", "a", "other", "", "x-user", "b", "X-User", "a"), []evenkeel.Key{header}, "a,b,a"},
		{"second header", sending("x-tenant", "acme"), []evenkeel.Key{header, tenant, path}, "acme"},
		{"the order counts", sending("x-tenant", "acme", "x-user", "alice"), []evenkeel.Key{tenant, header}, "acme"},
		{"context before header", evenkeel.WithKey(sending("x-user", "alice"), "ctx"), []evenkeel.Key{ctx, header}, "ctx"},
		{"an empty key of a context is none", evenkeel.WithKey(sending("x-user", "alice"), ""), []evenkeel.Key{ctx, header}, "alice"},
	} {
		if got := affinityOf(affine(c.keys...)).find(callWith(c.ctx)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// What a caller sends on from others may hold anything. A key is a key, however strange and
// long; nothing else is made of it.
func TestHostileKeysAreKeysLikeOthers(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 1<<16)
	for _, value := range []string{"\x00", "\r\nx-evil: 1", "\xff\xfe", ",", ",,", long, long + "x"} {
		for _, ctx := range []context.Context{sending("x-user", value), evenkeel.WithKey(context.Background(), value)} {
			a := affinityOf(affine(evenkeel.Key{Header: "x-user"}, evenkeel.Key{Context: true}))
			if sum, ok := a.hash(callWith(ctx)); !ok || sum != hash.Sum(value) {
				t.Errorf("%.20q: %d, %v, want its hash", value, sum, ok)
			}
		}
	}
	many := make([]string, 0, 20_000)
	for i := range 10_000 {
		many = append(many, "x-user", fmt.Sprint(i))
	}
	a := affinityOf(affine(evenkeel.Key{Header: "x-user"}))
	if got := a.find(callWith(sending(many...))); strings.Count(got, ",") != 9999 {
		t.Errorf("10,000 values: %.40q", got)
	}
}

func TestKeysThatNoCallCanHaveAreRefused(t *testing.T) {
	keys := []evenkeel.Key{{Header: "ok"}, {Cookie: "session"}, {Query: "u"}, {Header: "Trace-Bin"}, {Header: "x|user"}, {Path: true}}
	wants := []string{
		`grpcbalancer: Keys[1].Cookie is "session", want a header, the path or the context: gRPC has no cookies`,
		`grpcbalancer: Keys[2].Query is "u", want a header, the path or the context: gRPC has no query`,
		`grpcbalancer: Keys[3].Header is "Trace-Bin", want a name that does not end in "-bin"`,
		`grpcbalancer: Keys[4].Header is "x|user", want a name that metadata can have: letters, digits, '-', '_' and '.'`,
	}
	_, parsed := builder{}.ParseConfig([]byte(`{"keys": [{"header": "ok"}, {"cookie": "session"}, {"query": "u"}, ` +
		`{"header": "Trace-Bin"}, {"header": "x|user"}, {"path": true}]}`))
	for of, err := range map[string]error{
		"Register":    Register("evenkeel_test_wrong_keys", affine(keys...)),
		"ParseConfig": parsed,
	} {
		if err == nil {
			t.Errorf("%s takes them", of)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v\nwant %q in it", of, err, want)
			}
		}
	}
	if balancer.Get("evenkeel_test_wrong_keys") != nil {
		t.Error("what was refused is registered")
	}
	for text, want := range map[string]string{
		`{"requestHashHeader": "x-user-bin"}`: `want a name that does not end in "-bin"`, // as gRFC A76
		`{"requestHashHeader": "x user"}`:     "Keys[0].Header",
		`{"requestHashHeader": ":path"}`:      "Keys[0].Header",
	} {
		if _, err := (builder{}).ParseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
}

func TestCallsGoWhereTheirKeySays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newAffineRig(t, affine(evenkeel.Key{Header: "x-user"}))
		r.up(each("a", "b", "c", "d")...)
		p := r.latest().Picker
		on := func(ctx context.Context) string {
			result, err := p.Pick(callWith(ctx))
			if err != nil {
				t.Fatal(err)
			}
			result.Done(succeeded)
			return result.SubConn.(*fakeConn).addr
		}
		for i := range 100 {
			key := fmt.Sprint("user-", i)
			if got, want := on(sending("x-user", key)), string("abc"[hash.Sum(key)%3]); got != want {
				t.Errorf("%s is on %s, want %s", key, got, want)
			}
		}
		if got := on(context.Background()); got != "d" {
			t.Errorf("a call without a key is on %s, want d", got)
		}

		// The picker that is in use knows of a new config at once.
		r.config = &lbConfig{config: affine(evenkeel.Key{Context: true})}
		if err := r.send(r.list); err != nil {
			t.Fatal(err)
		}
		both := evenkeel.WithKey(sending("x-user", "alice"), "k")
		if got, want := on(both), string("abc"[hash.Sum("k")%3]); got != want {
			t.Errorf("by the context: on %s, want %s", got, want)
		}
		r.config = &lbConfig{config: evenkeel.Config{Policy: lastOnly{}}}
		if err := r.send(r.list); err != nil {
			t.Fatal(err)
		}
		if got := on(both); got != "d" || r.policy.keys.Load() != nil {
			t.Errorf("without keys: on %s, want d, and nobody looks for a key", got)
		}
	})
}

// Calls without a key, and with an empty one, are the fallback's.
func TestCallsWithoutAKeyGoByTheFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newAffineRig(t, evenkeel.Config{
			Policy: picker.Hash{Fallback: picker.RoundRobin{}},
			Keys:   []evenkeel.Key{{Header: "x-user"}, {Context: true}},
		})
		r.up(each("a", "b", "c", "d")...)
		for _, ctx := range []context.Context{
			context.Background(), sending("x-user", ""), sending("other", "x"), evenkeel.WithKey(context.Background(), ""),
		} {
			got := map[string]int{}
			for range 40 {
				result, err := r.latest().Picker.Pick(callWith(ctx))
				if err != nil {
					t.Fatal(err)
				}
				result.Done(succeeded)
				got[result.SubConn.(*fakeConn).addr]++
			}
			if got["a"] != 10 || got["b"] != 10 || got["c"] != 10 || got["d"] != 10 {
				t.Errorf("%v: %v, want 10 each", ctx, got)
			}
		}
		got := map[string]int{}
		for range 40 {
			result, err := r.latest().Picker.Pick(callWith(sending("x-user", "alice")))
			if err != nil {
				t.Fatal(err)
			}
			result.Done(succeeded)
			got[result.SubConn.(*fakeConn).addr]++
		}
		if len(got) != 1 {
			t.Errorf("one key: %v, want one endpoint", got)
		}
	})
}

// A config that is refused leaves the keys of the one in force.
func TestKeysStayWhereAConfigIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newAffineRig(t, affine(evenkeel.Key{Header: "x-user"}))
		r.up(each("a", "b")...)
		before := r.policy.keys.Load()
		r.config = struct{ loadBalancingConfig }{}
		if err := r.send(r.list); err == nil {
			t.Error("no error")
		}
		if r.policy.keys.Load() != before || before == nil {
			t.Error("the keys are others")
		}
	})
}

// A key in the context, the path, and no key to look for cost nothing beside the Done. For a
// header gRPC makes a copy of all metadata, a map and one allocation for each name.
func TestKeysCostAPickNothingButACopyOfTheMetadata(t *testing.T) {
	if testcost.Race {
		t.Skip("the race detector makes sync.Pool forget at random")
	}
	synctest.Test(t, func(t *testing.T) {
		three := evenkeel.WithKey(sending("x-user", "alice", "traceparent", "00-1-2-01", "authorization", "Bearer x"), "ctx")
		header, absent := evenkeel.Key{Header: "x-user"}, evenkeel.Key{Header: "absent"}
		for _, c := range []struct {
			name string
			keys []evenkeel.Key
			ctx  context.Context
			want float64
		}{
			{"context", []evenkeel.Key{{Context: true}}, three, 1},
			{"path", []evenkeel.Key{{Path: true}}, three, 1},
			{"header without metadata", []evenkeel.Key{header}, context.Background(), 1},
			{"header of one", []evenkeel.Key{header}, sending("x-user", "alice"), 4},
			{"header of three", []evenkeel.Key{header}, three, 6},
			{"second header of three", []evenkeel.Key{absent, header}, three, 6}, // one copy
		} {
			r := newAffineRig(t, affine(c.keys...))
			r.up(each("a", "b", "c", "d")...)
			p, info := r.latest().Picker, callWith(c.ctx)
			if n := testing.AllocsPerRun(1000, func() {
				result, err := p.Pick(info)
				if err != nil {
					t.Fatal(err)
				}
				result.Done(succeeded)
			}); n > c.want {
				t.Errorf("%s: %v allocations per pick and Done, want %v", c.name, n, c.want)
			}
		}
	})
}

// BenchmarkKey is a key found and hashed, which a pick costs more under a policy with keys.
func BenchmarkKey(b *testing.B) {
	withNames := func(n int) context.Context {
		pairs := []string{"x-user", "user-0123456789"}
		for i := 1; i < n; i++ {
			pairs = append(pairs, fmt.Sprint("x-header-", i), "0123456789abcdef0123456789abcdef")
		}
		return sending(pairs...)
	}
	header := evenkeel.Key{Header: "x-user"}
	for _, c := range []struct {
		name string
		key  evenkeel.Key
		ctx  context.Context
	}{
		{"context", evenkeel.Key{Context: true}, evenkeel.WithKey(withNames(3), "user-0123456789")},
		{"path", evenkeel.Key{Path: true}, withNames(3)},
		{"header/names=0", header, context.Background()},
		{"header/names=1", header, withNames(1)},
		{"header/names=3", header, withNames(3)},
		{"header/names=10", header, withNames(10)},
	} {
		b.Run("from="+c.name, func(b *testing.B) {
			a, info := affinityOf(affine(c.key)), callWith(c.ctx)
			b.ReportAllocs()
			for b.Loop() {
				a.hash(info)
			}
		})
	}
}
