package grpcbalancer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/testcost"
	"github.com/evenkeel/evenkeel/picker"
)

// says makes the child of an endpoint say s, with this picker, and nobody hear it.
func (r *rig) says(key string, s connectivity.State, pick func() (balancer.PickResult, error)) {
	r.policy.children[key].state.Store(&balancer.State{ConnectivityState: s, Picker: pickFunc(pick)})
}

type pickFunc func() (balancer.PickResult, error)

func (f pickFunc) Pick(balancer.PickInfo) (balancer.PickResult, error) { return f() }

func TestPickLooksOnceMoreWhereAConnectionJustWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, `{"policy": "round_robin"}`)
		r.up(each("a", "b")...)
		r.says("a", connectivity.Idle, func() (balancer.PickResult, error) {
			t.Error("the picker of an idle child was asked")
			return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
		})
		if got := r.shares(10); got["b"] != 10 {
			t.Fatalf("shares %v, want b alone", got)
		}
		r.says("b", connectivity.Ready, func() (balancer.PickResult, error) {
			return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
		})
		if _, err := r.pick(); !errors.Is(err, balancer.ErrNoSubConnAvailable) {
			t.Fatalf("pick: %v, want to wait", err)
		}
		for key, s := range statsOf(r.policy) {
			if s.InFlight != 0 || s.Success != 1 {
				t.Errorf("%s: %d in flight, success %v", key, s.InFlight, s.Success)
			}
		}
	})
}

// The second look is for another endpoint, even where the first is the best.
func TestPickLooksElsewhereTheSecondTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, `{"policy": {"p2c": {"signal": "in_flight"}}}`)
		r.up(each("a", "b")...)
		for range 3 {
			r.pickedOn("b")
		}
		r.says("a", connectivity.Idle, nil)
		for range 10 {
			if addr, _ := r.picked(); addr != "b" {
				t.Fatalf("picked %s, want b", addr)
			}
		}
	})
}

// That the caller left says that the answer would have taken longer still.
func TestCancelledCallRaisesALatencyThatWasTooLow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(at("a"))
		_, done := r.picked()
		time.Sleep(10 * time.Millisecond)
		done(succeeded)
		before := r.stats("a").Latency
		ctx, cancel := context.WithCancel(&callContext{Context: context.Background(), kind: picker.Unary})
		result, err := r.latest().Picker.Pick(balancer.PickInfo{Ctx: ctx})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		cancel()
		result.Done(balancer.DoneInfo{Err: status.Error(codes.Canceled, "x"), BytesSent: true})
		if s := r.stats("a"); s.Latency < 2*before || s.Success != 1 {
			t.Errorf("latency %v and success %v, want far more than %v and 1", s.Latency, s.Success, before)
		}
	})
}

func TestPickHandsOnTheChildsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(at("a"))
		drop := status.Error(codes.Aborted, "dropped")
		r.says("a", connectivity.Ready, func() (balancer.PickResult, error) { return balancer.PickResult{}, drop })
		if _, err := r.pick(); err != drop {
			t.Fatalf("error %v, want the child's", err)
		}
		var ended []balancer.DoneInfo
		conn := r.conn("a")
		r.says("a", connectivity.Ready, func() (balancer.PickResult, error) {
			return balancer.PickResult{
				SubConn:  conn,
				Metadata: metadata.Pairs("k", "v"),
				Done:     func(i balancer.DoneInfo) { ended = append(ended, i) },
			}, nil
		})
		result, err := r.pick()
		if err != nil {
			t.Fatal(err)
		}
		if result.SubConn != conn || result.Metadata.Get("k")[0] != "v" {
			t.Errorf("%+v, want the child's connection and metadata", result)
		}
		if s := r.stats("a"); s.InFlight != 1 {
			t.Errorf("%d in flight, want 1", s.InFlight)
		}
		result.Done(succeeded)
		if len(ended) != 1 || !ended[0].BytesReceived {
			t.Errorf("the child heard %v, want the end once", ended)
		}
		if s := r.stats("a"); s.InFlight != 0 {
			t.Errorf("%d in flight at the end", s.InFlight)
		}
	})
}

// Calls are reused. A second Done, which gRPC promises not to make, must not end the
// attempt that has the call by then.
func TestSecondDoneEndsNobodyElsesAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(at("a"))
		for range 100 {
			_, done := r.picked()
			done(succeeded)
			_, next := r.picked()
			done(succeeded)
			done(phantom)
			if s := r.stats("a"); s.InFlight != 1 {
				t.Fatalf("%d in flight, want the second attempt", s.InFlight)
			}
			next(succeeded)
		}
		if s := r.stats("a"); s.InFlight != 0 || s.Picks != 200 {
			t.Errorf("%+v", s)
		}
	})
}

func TestFailingPickerNeverAnswersWithAStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		handshake := status.Error(codes.PermissionDenied, "bad certificate")
		r.dial = func(string) error { return handshake }
		r.up(at("a"))
		wantPlain := func(text string) {
			t.Helper()
			_, err := r.pick()
			if _, isStatus := status.FromError(err); isStatus || err == nil {
				t.Fatalf("error %v (%T), want a plain one: calls that wait for ready would end", err, err)
			}
			if err.Error() != text {
				t.Errorf("error %q, want %q", err, text)
			}
		}
		wantPlain(handshake.Error())
		r.policy.ResolverError(status.Error(codes.Unavailable, "no DNS"))
		r.settle()
		wantPlain("evenkeel: fake:///orders: name resolver error: rpc error: code = Unavailable desc = no DNS")
		r.conn("a").becomes(connectivity.TransientFailure, errors.New("refused"))
		r.settle()
		wantPlain("refused; evenkeel: fake:///orders: name resolver: rpc error: code = Unavailable desc = no DNS")
	})
}

// A failing picker that outlived its time sends nobody away.
func TestFailingPickerWaitsForAChildOnItsWayUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.dial = func(string) error { return errors.New("refused") }
		r.up(at("a"))
		old := r.latest().Picker
		r.conn("a").becomes(connectivity.Ready, nil)
		r.settle()
		if _, err := old.Pick(balancer.PickInfo{}); !errors.Is(err, balancer.ErrNoSubConnAvailable) {
			t.Errorf("pick: %v, want to wait", err)
		}
		r.says("a", connectivity.Idle, func() (balancer.PickResult, error) {
			t.Error("the picker of an idle child was asked")
			return balancer.PickResult{}, errors.New("x")
		})
		if _, err := old.Pick(balancer.PickInfo{}); !errors.Is(err, balancer.ErrNoSubConnAvailable) {
			t.Errorf("pick: %v, want to wait", err)
		}
	})
}

func TestKindComesFromTheInterceptors(t *testing.T) {
	type other struct{}
	base := context.WithValue(context.Background(), other{}, 1)
	var got []context.Context
	_ = UnaryInterceptor(base, "m", nil, nil, nil, unaryCall(func(ctx context.Context) { got = append(got, ctx) }))
	_, _ = StreamInterceptor(base, nil, nil, "m", streamCall(func(ctx context.Context) { got = append(got, ctx) }))
	for i, c := range []struct {
		ctx  context.Context
		want picker.Kind
	}{
		{got[0], picker.Unary},
		{got[1], picker.Stream},
		{base, picker.UnknownKind},
		{nil, picker.UnknownKind},
	} {
		var r evenkeel.Request
		if callOf(c.ctx).describe(&r); r.Kind != c.want {
			t.Errorf("%d: kind %v, want %v", i, r.Kind, c.want)
		}
	}
}

// What a duration teaches depends on the kind of the call.
func TestDurationOfAStreamIsNoLatency(t *testing.T) {
	for _, c := range []struct {
		name string
		kind picker.Kind
		took time.Duration
		want bool
	}{
		{"unary, long", picker.Unary, time.Minute, true},
		{"stream, short", picker.Stream, time.Second, false},
		{"unknown, short", picker.UnknownKind, time.Second, true},
		{"unknown, long", picker.UnknownKind, time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "")
				r.up(at("a"))
				ctx := &callContext{Context: context.Background(), kind: c.kind}
				result, err := r.latest().Picker.Pick(balancer.PickInfo{Ctx: ctx})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.took)
				result.Done(succeeded)
				if got := r.stats("a").Latency > 0; got != c.want {
					t.Errorf("a latency was taken: %v, want %v", got, c.want)
				}
			})
		})
	}
}

// An RPC allocates some 130 times; the policy must stay invisible in that. The one
// allocation is the Done function: it has to know its attempt, so that a second
// call cannot end another's.
func TestPickAllocatesOnce(t *testing.T) {
	if testcost.Race {
		t.Skip("the race detector makes sync.Pool forget at random")
	}
	synctest.Test(t, func(t *testing.T) {
		for _, json := range []string{"", `{"policy": "round_robin"}`, `{"policy": "random"}`, watched, `{"health": {"protocol": "tcp"}}`} {
			r := newRig(t, json)
			r.up(each("a", "b", "c", "d")...)
			p := r.latest().Picker
			info := balancer.PickInfo{FullMethodName: "/s/m", Ctx: context.Background()}
			if n := testing.AllocsPerRun(1000, func() {
				result, err := p.Pick(info)
				if err != nil {
					t.Fatal(err)
				}
				result.Done(succeeded)
			}); n > 1 {
				t.Errorf("config %q: %v allocations per pick and Done, want 1", json, n)
			}
		}
	})
}

func TestConcurrentPicksAreAllCountedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "")
		r.up(each("a", "b", "c")...)
		p := r.latest().Picker
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for i := range 2000 {
					result, err := p.Pick(balancer.PickInfo{})
					if err != nil {
						t.Error(err)
						return
					}
					if i%3 == 0 {
						result.Done(phantom)
					} else {
						result.Done(succeeded)
					}
				}
			})
		}
		all.Wait()
		total := uint64(0)
		for key, s := range statsOf(r.policy) {
			total += s.Picks
			if s.InFlight != 0 {
				t.Errorf("%s: %d in flight", key, s.InFlight)
			}
		}
		if total != 16_000 {
			t.Errorf("%d picks, want 16,000", total)
		}
	})
}
