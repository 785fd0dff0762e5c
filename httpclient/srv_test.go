package httpclient

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// registry is a DNS server with SRV records.
type registry struct {
	mu      sync.Mutex
	asked   string
	records []*net.SRV
	err     error
	hosts   map[string][]string
	errs    map[string]error
}

func (r *registry) resolver() *SRV { return &SRV{Lookup: r.srv, DNS: DNS{Lookup: r.ips}} }

func (r *registry) srv(_ context.Context, name string) ([]*net.SRV, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = name
	return slices.Clone(r.records), r.err
}

func (r *registry) ips(_ context.Context, host string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ips []netip.Addr
	for _, ip := range r.hosts[host] {
		ips = append(ips, netip.MustParseAddr(ip))
	}
	if r.errs[host] == nil && ips == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return ips, r.errs[host]
}

// change changes what the server says.
func (r *registry) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// srv reads records of "target:port priority weight".
func srvRecords(t *testing.T, texts ...string) []*net.SRV {
	var records []*net.SRV
	for _, text := range texts {
		r := &net.SRV{}
		target, rest, _ := strings.Cut(text, ":")
		if _, err := fmt.Sscan(rest, &r.Port, &r.Priority, &r.Weight); err != nil {
			t.Fatal(text, err)
		}
		r.Target = target
		records = append(records, r)
	}
	return records
}

func TestSRVGivesPortsPrioritiesAndWeights(t *testing.T) {
	hosts := map[string][]string{"a.": {"10.0.0.1"}, "b.": {"10.0.0.2"}, "c.": {"10.0.0.3", "10.0.0.4"}, "v6.": {"fd00::1"}, "same.": {"10.0.0.1"}}
	for _, c := range []struct {
		name    string
		records []string
		want    string
	}{
		{"weights", []string{"a.:8080 1 10", "b.:8081 1 30"}, "10.0.0.1:8080=10 10.0.0.2:8081=30"},
		{"all 0 are equal", []string{"a.:80 0 0", "b.:81 0 0"}, "10.0.0.1:80 10.0.0.2:81"},
		{"all the same are equal", []string{"a.:80 0 7", "b.:81 0 7"}, "10.0.0.1:80 10.0.0.2:81"},
		{"0 is little and no drain", []string{"a.:80 0 0", "b.:80 0 5", "v6.:80 0 90"}, "10.0.0.1:80=0.05 10.0.0.2:80=5 [fd00::1]:80=90"},
		{"0 beside one without addresses", []string{"none.:80 0 1", "a.:80 0 0", "b.:80 0 50"}, "10.0.0.1:80=0.5 10.0.0.2:80=50"},
		{"all 0, and names share equally", []string{"a.:80 0 0", "c.:80 0 0"}, "10.0.0.1:80=1 10.0.0.3:80=0.5 10.0.0.4:80=0.5"},
		{"the lowest priority alone", []string{"b.:80 20 1", "a.:80 10 0", "c.:80 30 9"}, "10.0.0.1:80"},
		{"the next, if no name has addresses", []string{"none.:80 1 1", "void.:80 1 1", "b.:80 2 1"}, "10.0.0.2:80"},
		{"one name with addresses is enough", []string{"none.:80 1 1", "a.:80 1 3", "b.:80 2 1"}, "10.0.0.1:80"},
		{"an address twice has the sum", []string{"a.:80 0 2", "same.:80 0 3", "b.:80 0 1"}, "10.0.0.1:80=5 10.0.0.2:80=1"},
		{"an address at two ports is two", []string{"a.:80 0 2", "same.:81 0 2"}, "10.0.0.1:80 10.0.0.1:81"},
		{"an IP address in place of a name", []string{"10.0.0.9:80 0 0"}, "10.0.0.9:80"},
		{"what points nowhere", []string{".:80 0 0", "a.:0 0 0", "b.:80 1 1"}, "10.0.0.2:80"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &registry{hosts: hosts, records: srvRecords(t, c.records...)}
			watching(t, r.resolver(), "svc.test", func(n *noted) {
				if got, err := n.text(); got != c.want {
					t.Errorf("%s: %s, %v, want %s", c.name, got, err, c.want)
				}
			})
			slices.Reverse(r.records) // their order says nothing
			watching(t, r.resolver(), "svc.test", func(n *noted) {
				if got, err := n.text(); got != c.want {
					t.Errorf("%s, in another order: %s, %v, want %s", c.name, got, err, c.want)
				}
			})
		})
	}
}

// Bug 24: a name's weight is what its addresses have together.
func TestBug24WeightOfANameIsSplitOverItsAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &registry{hosts: map[string][]string{}, records: srvRecords(t, "many.:80 0 10", "few.:80 0 90")}
		for i := range 11 {
			r.hosts["many."] = append(r.hosts["many."], fmt.Sprintf("10.1.0.%d", i))
		}
		for i := range 5 {
			r.hosts["few."] = append(r.hosts["few."], fmt.Sprintf("10.2.0.%d", i))
		}
		watching(t, r.resolver(), "svc.test", func(n *noted) {
			var many, few float64
			for _, a := range n.lists[0] {
				if strings.HasPrefix(a.Addr, "10.1.") {
					many += a.Weight.Value()
				} else {
					few += a.Weight.Value()
				}
			}
			if math.Abs(many-10) > 1e-9 || math.Abs(few-90) > 1e-9 {
				t.Errorf("the names have %v and %v, want 10 and 90", many, few)
			}
		})
	})
}

func TestSRVLooksUpTheNameOfTheService(t *testing.T) {
	for _, c := range []struct{ scheme, name, want string }{
		{"http", "", "_http._tcp.svc.test"},
		{"https", "", "_https._tcp.svc.test"},
		{"https", "orders.service.consul", "orders.service.consul"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &registry{hosts: map[string][]string{"a.": {"10.0.0.1"}}, records: srvRecords(t, "a.:80 0 0")}
			s := r.resolver()
			s.Name = c.name
			tr := stubbed(t, &Transport{Resolver: s}, stubAnswer)
			if _, err := tr.RoundTrip(request(t, "GET", c.scheme+"://svc.test/", nil)); err != nil || r.asked != c.want {
				t.Errorf("asked for %q, %v, want %q", r.asked, err, c.want)
			}
			tr.Close()
		})
	}
}

func TestSRVOfAnIPAddressIsTheAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &registry{}
		watching(t, r.resolver(), "10.0.0.1", func(n *noted) {
			if got, err := n.text(); got != "10.0.0.1:80" || err != nil || r.asked != "" {
				t.Errorf("%s, %v, asked for %q", got, err, r.asked)
			}
		})
	})
}

func TestSRVNameThatFailsKeepsItsAddressesAndShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &registry{
			hosts:   map[string][]string{"a.": {"10.0.0.1"}, "b.": {"10.0.0.2"}},
			errs:    map[string]error{},
			records: srvRecords(t, "a.:80 0 0", "b.:80 0 0"),
		}
		tr := stubbed(t, &Transport{Resolver: r.resolver()}, stubAnswer)
		roundTripAll(t, tr)
		r.change(func() { r.errs["a."] = errResolve; r.hosts["b."] = []string{"10.0.0.3"} })
		time.Sleep(34 * time.Second)
		check := func(what string, wrong error, want ...string) {
			t.Helper()
			s := one(t, tr)
			var got []string
			for _, e := range s.Endpoints {
				got = append(got, e.ID)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) || !errors.Is(s.ResolveError, wrong) {
				t.Errorf("%s: %v, %v, want %v, %v", what, got, s.ResolveError, want, wrong)
			}
		}
		check("a fails", errResolve, "10.0.0.1:80", "10.0.0.3:80")
		r.change(func() { r.errs["a."] = nil; r.hosts["a."] = nil })
		time.Sleep(40 * time.Second)
		var de *net.DNSError
		if s := one(t, tr); len(s.Endpoints) != 1 || !errors.As(s.ResolveError, &de) {
			t.Errorf("a is gone: %v, %v", s.Endpoints, s.ResolveError)
		}
		r.change(func() { r.hosts["a."] = []string{"10.0.0.4"} })
		time.Sleep(40 * time.Second)
		check("a is back", nil, "10.0.0.3:80", "10.0.0.4:80")
		r.change(func() { r.err, r.records = errResolve, nil })
		time.Sleep(40 * time.Second)
		check("no records", errResolve, "10.0.0.3:80", "10.0.0.4:80")
		r.change(func() { r.err, r.records = nil, srvRecords(t, ".:0 0 0") })
		time.Sleep(40 * time.Second)
		if s := one(t, tr); len(s.Endpoints) != 2 || s.ResolveError == nil {
			t.Errorf("no such service: %v, %v", s.Endpoints, s.ResolveError)
		}
		tr.Close()
	})
}

func TestSRVWithTooManyRecordsIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &registry{hosts: map[string][]string{"a.": {"10.0.0.1"}}}
		for i := range maxRecords + 1 {
			r.records = append(r.records, &net.SRV{Target: "a.", Port: uint16(i + 1)})
		}
		watching(t, r.resolver(), "svc.test", func(n *noted) {
			if got, err := n.text(); got != "no list" || err == nil || !strings.Contains(err.Error(), "has 513 records, want at most 512") {
				t.Errorf("%s, %v", got, err)
			}
			r.change(func() { r.records = r.records[1:] })
			time.Sleep(2 * time.Second)
			if len(n.last()) != maxRecords {
				t.Errorf("%d addresses, want %d", len(n.last()), maxRecords)
			}
		})
	})
}

func TestSRVBoundsLookupsAtOnceAndTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		s := &SRV{
			Lookup: func(context.Context, string) ([]*net.SRV, error) {
				var records []*net.SRV
				for i := range 100 {
					records = append(records, &net.SRV{Target: fmt.Sprintf("n%d.", i), Port: 80})
				}
				return records, nil
			},
			DNS: DNS{Lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
				n := now.Add(1)
				defer now.Add(-1)
				most.Store(max(most.Load(), n))
				if host == "n50." { // hangs
					<-ctx.Done()
					return nil, ctx.Err()
				}
				time.Sleep(time.Millisecond)
				return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
			}},
		}
		watching(t, s, "svc.test", func(n *noted) {
			time.Sleep(lookTimeout + 100*time.Millisecond)
			if got, err := n.text(); got != "10.0.0.1:80" || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s, %v", got, err)
			}
			if most.Load() > namesAtOnce {
				t.Errorf("%d lookups at once, want at most %d", most.Load(), namesAtOnce)
			}
		})
	})
}

func TestSRVSettingsOutOfRangeAreRefused(t *testing.T) {
	err := (&SRV{Name: "two words", DNS: DNS{Interval: 1}}).Validate()
	if err == nil || !strings.Contains(err.Error(), `SRV.Name is "two words", want`) || !strings.Contains(err.Error(), "DNS.Interval is 1ns") {
		t.Error(err)
	}
	if err := (*SRV)(nil).Validate(); err == nil {
		t.Error("nil is no SRV")
	}
}
