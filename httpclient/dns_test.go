package httpclient

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
)

// zone is a DNS server of the test's own. It is used inside synctest bubbles.
type zone struct {
	mu     sync.Mutex
	answer []netip.Addr
	err    error
	asked  []time.Time
}

func (z *zone) lookup(context.Context, string) ([]netip.Addr, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked = append(z.asked, time.Now())
	return slices.Clone(z.answer), z.err
}

func (z *zone) set(err error, ips ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.answer, z.err = nil, err
	for _, ip := range ips {
		z.answer = append(z.answer, netip.MustParseAddr(ip))
	}
}

// gaps returns the times between lookups so far.
func (z *zone) gaps() []time.Duration {
	z.mu.Lock()
	defer z.mu.Unlock()
	var gaps []time.Duration
	for i := 1; i < len(z.asked); i++ {
		gaps = append(gaps, z.asked[i].Sub(z.asked[i-1]))
	}
	return gaps
}

// noted is a Sink that keeps what it is told.
type noted struct {
	mu    sync.Mutex
	lists [][]Address
	errs  []error
	hints chan struct{}
}

func (n *noted) Update(list []Address) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lists = append(n.lists, slices.Clone(list))
	return nil
}

func (n *noted) Error(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.errs = append(n.errs, err)
}

func (n *noted) Refresh() <-chan struct{} { return n.hints }

// text returns the last list as "address=weight", sorted, and the last error.
func (n *noted) text() (list string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.errs) > 0 {
		err = n.errs[len(n.errs)-1]
	}
	if len(n.lists) == 0 {
		return "no list", err
	}
	return listed(n.lists[len(n.lists)-1]), err
}

// listed returns a list as text in which its order says nothing.
func listed(list []Address) string {
	var all []string
	for _, a := range list {
		text := a.Addr
		if a.Weight.IsSet() {
			text += "=" + strconv.FormatFloat(a.Weight.Value(), 'g', 4, 64)
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// list returns the addresses of list i, in its order.
func (n *noted) list(i int) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var got []string
	for _, a := range n.lists[i] {
		got = append(got, a.Addr)
	}
	return got
}

// counts returns how many lists and errors there were.
func (n *noted) counts() (lists, errs int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.lists), len(n.errs)
}

// last returns the addresses of the last list, sorted.
func (n *noted) last() []string {
	lists, _ := n.counts()
	got := n.list(lists - 1)
	slices.Sort(got)
	return got
}

// watching runs r's Watch of host and calls f while it runs.
func watching(t *testing.T, r Resolver, host string, f func(*noted)) {
	ctx, cancel := context.WithCancel(t.Context())
	sink := &noted{hints: make(chan struct{}, 1)}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.Watch(ctx, Target{Scheme: "http", Host: host, Port: "80"}, sink); !errors.Is(err, context.Canceled) {
			t.Errorf("Watch: %v", err)
		}
	})
	synctest.Wait()
	f(sink)
	cancel()
	wg.Wait()
}

func TestDNSAnswersAreASet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{}
		z.set(nil, "10.0.0.2", "10.0.0.1", "::ffff:10.0.0.2", "10.0.0.3", "10.0.0.1")
		watching(t, &DNS{Lookup: z.lookup}, "svc.test", func(n *noted) {
			if got := n.last(); !slices.Equal(got, []string{"10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"}) {
				t.Errorf("addresses are %v", got)
			}
			z.set(nil, "10.0.0.3", "10.0.0.1", "10.0.0.2")
			time.Sleep(time.Minute)
			if !slices.Equal(n.list(0), n.list(1)) {
				t.Errorf("the same set came as %v and then as %v", n.list(0), n.list(1))
			}
		})
	})
}

func TestDNSGivesEachClientAnOrderOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{}
		z.set(nil, "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.7", "10.0.0.8")
		orders := map[string]bool{}
		for range 10 {
			watching(t, &DNS{Lookup: z.lookup}, "svc.test", func(n *noted) {
				orders[strings.Join(n.list(0), " ")] = true
			})
		}
		if len(orders) < 9 { // 8! orders: two of ten are the same once in a thousand runs
			t.Errorf("ten clients have %d orders", len(orders))
		}
	})
}

func TestDNSLooksUpAgainWithJitter(t *testing.T) {
	for _, c := range []struct{ interval, low, high time.Duration }{
		{0, 27 * time.Second, 33 * time.Second},
		{5 * time.Second, 4500 * time.Millisecond, 5500 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			z := &zone{}
			z.set(nil, "10.0.0.1")
			watching(t, &DNS{Lookup: z.lookup, Interval: c.interval}, "svc.test", func(*noted) { time.Sleep(20 * time.Minute) })
			gaps := z.gaps()
			low, high := slices.Min(gaps), slices.Max(gaps)
			if len(gaps) < 20 || low < c.low || high > c.high || high-low < (c.high-c.low)/4 {
				t.Errorf("%d gaps of %v to %v, want within %v to %v and spread", len(gaps), low, high, c.low, c.high)
			}
		})
	}
}

func TestDNSFailureKeepsTheListAndBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{}
		z.set(nil, "10.0.0.1", "10.0.0.2")
		tr := stubbed(t, &Transport{Resolver: &DNS{Lookup: z.lookup}}, stubAnswer)
		roundTripAll(t, tr)
		z.set(errResolve)
		time.Sleep(4 * time.Minute)
		roundTripAll(t, tr)
		if s := one(t, tr); len(s.Endpoints) != 2 || !errors.Is(s.ResolveError, errResolve) || s.ResolveErrors < 8 {
			t.Errorf("%d endpoints, %d errors, %v", len(s.Endpoints), s.ResolveErrors, s.ResolveError)
		}
		for i, gap := range z.gaps()[1:] { // the first is to the failure
			want := min(time.Second<<i, 32*time.Second)
			if gap < want*8/10 || gap > want*12/10 {
				t.Errorf("pause %d is %v, want %v ±20 %%", i, gap, want)
			}
		}
		z.set(nil, "10.0.0.3")
		time.Sleep(40 * time.Second)
		if s := one(t, tr); len(s.Endpoints) != 1 || s.Endpoints[0].ID != "10.0.0.3:80" || s.ResolveError != nil {
			t.Errorf("after recovery: %+v", s)
		}
		z.set(nil) // a successful empty answer
		time.Sleep(40 * time.Second)
		if _, err := tr.RoundTrip(request(t, "GET", svc, nil)); !errors.Is(err, evenkeel.ErrEmpty) {
			t.Errorf("%v, want %v", err, evenkeel.ErrEmpty)
		}
		tr.Close()
	})
}

func TestDNSFailureAtTheStartFailsRequestsUntilItRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{}
		z.set(errResolve)
		tr := stubbed(t, &Transport{Resolver: &DNS{Lookup: z.lookup}}, stubAnswer)
		for range 3 {
			if _, err := tr.RoundTrip(request(t, "GET", svc, nil)); !errors.Is(err, errResolve) {
				t.Errorf("%v, want %v", err, errResolve)
			}
		}
		if n := len(z.gaps()); n != 0 {
			t.Errorf("%d more lookups because of requests", n)
		}
		z.set(nil, "10.0.0.1")
		time.Sleep(1300 * time.Millisecond)
		roundTripAll(t, tr)
		tr.Close()
	})
}

func TestDNSComesEarlierWhenConnectionsFailButNotOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{}
		z.set(nil, "10.0.0.1")
		tr := stubbed(t, &Transport{Resolver: &DNS{Lookup: z.lookup}}, func(string, *http.Request) (*http.Response, error) {
			return nil, &unreachedError{errors.New("refused")}
		})
		for range 600 { // a minute of failures
			if _, err := tr.RoundTrip(request(t, "GET", svc, nil)); err == nil {
				t.Error("no error")
			}
			time.Sleep(100 * time.Millisecond)
		}
		gaps := z.gaps()
		if slices.Min(gaps) < lookLeast || slices.Max(gaps) > lookLeast+200*time.Millisecond {
			t.Errorf("gaps between lookups are %v, want about %v", gaps, lookLeast)
		}
		tr.Close()
	})
}

func TestDNSHungLookupFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := func(ctx context.Context, _ string) ([]netip.Addr, error) { <-ctx.Done(); return nil, ctx.Err() }
		watching(t, &DNS{Lookup: hung}, "svc.test", func(n *noted) {
			time.Sleep(lookTimeout + time.Second)
			if lists, errs := n.counts(); lists != 0 || errs != 1 {
				t.Errorf("%d lists and %d errors, want 0 and 1", lists, errs)
			}
		})
	})
}

func TestHostThatIsAnIPAddressNeedsNoLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{}
		for _, c := range []struct{ host, want string }{
			{"10.0.0.1", "10.0.0.1:80"}, {"fd00::1", "[fd00::1]:80"}, {"fe80::1%eth0", "[fe80::1%eth0]:80"},
			{"::ffff:10.0.0.1", "10.0.0.1:80"},
		} {
			watching(t, &DNS{Lookup: z.lookup}, c.host, func(n *noted) {
				time.Sleep(time.Hour)
				lists, _ := n.counts()
				if got := n.last(); lists != 1 || len(got) != 1 || got[0] != c.want {
					t.Errorf("%s: %v after %d lists", c.host, got, lists)
				}
			})
		}
		if len(z.asked) != 0 {
			t.Errorf("%d lookups", len(z.asked))
		}
	})
}

func TestFamilyWithoutARouteIsNoDeadEndpoint(t *testing.T) {
	both := []string{"10.0.0.1", "10.0.0.2", "fd00::1", "fd00::2"}
	none := func(netip.AddrPort) bool { return false }
	for _, c := range []struct {
		name  string
		route func(netip.AddrPort) bool
		host  string
		ips   []string
		want  []string
	}{
		{"IPv4 only", func(ap netip.AddrPort) bool { return ap.Addr().Is4() }, "svc.test", both, []string{"10.0.0.1:80", "10.0.0.2:80"}},
		{"IPv6 only", func(ap netip.AddrPort) bool { return ap.Addr().Is6() }, "svc.test", both, []string{"[fd00::1]:80", "[fd00::2]:80"}},
		{"both", func(netip.AddrPort) bool { return true }, "svc.test", both, []string{"10.0.0.1:80", "10.0.0.2:80", "[fd00::1]:80", "[fd00::2]:80"}},
		{"neither", none, "svc.test", both, []string{"10.0.0.1:80", "10.0.0.2:80", "[fd00::1]:80", "[fd00::2]:80"}},
		{"one family in the answer", none, "svc.test", both[:2], []string{"10.0.0.1:80", "10.0.0.2:80"}},
		{"a route to one address", func(ap netip.AddrPort) bool { return ap == netip.MustParseAddrPort("[fd00::2]:80") }, "svc.test", both,
			[]string{"[fd00::1]:80", "[fd00::2]:80"}},
		{"localhost is one machine", func(netip.AddrPort) bool { return true }, "localhost", []string{"127.0.0.1", "::1"}, []string{"localhost:80"}},
		{"localhost without IPv6", func(ap netip.AddrPort) bool { return ap.Addr().Is4() }, "localhost", []string{"127.0.0.1", "::1"}, []string{"127.0.0.1:80"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			z := &zone{}
			z.set(nil, c.ips...)
			watching(t, &DNS{Lookup: z.lookup, hasRoute: c.route}, c.host, func(n *noted) {
				if got := n.last(); !slices.Equal(got, c.want) {
					t.Errorf("%s: %v, want %v", c.name, got, c.want)
				}
			})
		})
	}
}

func TestMachineHasARouteToItself(t *testing.T) {
	if !machineHasRoute(netip.MustParseAddrPort("127.0.0.1:80")) {
		t.Error("no route to 127.0.0.1")
	}
}

func TestDNSIntervalBelowItsBoundIsRefused(t *testing.T) {
	for _, d := range []time.Duration{-1, 1, 4 * time.Second} {
		tr := &Transport{Resolver: &DNS{Interval: d}}
		if _, err := tr.RoundTrip(request(t, "GET", svc, nil)); err == nil || !strings.Contains(err.Error(), "httpclient: DNS.Interval is "+d.String()+", want 0 or at least 5s") {
			t.Errorf("%v: %v", d, err)
		}
	}
}

// The zero Transport against a real server: the addresses are those that this machine
// has for the name.
func TestZeroTransportBalancesOverDNS(t *testing.T) {
	if _, err := net.DefaultResolver.LookupHost(t.Context(), "localhost"); err != nil {
		t.Skip("this machine does not know localhost: ", err)
	}
	s := serve(t, 1, hello, plain)[0]
	tr := &Transport{}
	c := client(t, tr)
	for range 20 { // also where localhost has an IPv6 address, on which nobody listens
		fetch(t, c, "http://localhost:"+s.addr[strings.LastIndexByte(s.addr, ':')+1:])
	}
	fetch(t, c, "http://"+s.addr)
	if n := s.requests.Load(); n != 21 {
		t.Errorf("%d requests, want 21", n)
	}
}
