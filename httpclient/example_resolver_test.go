package httpclient_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/httpclient"
)

// firstList is a Sink that prints the first list and ends the Watch.
type firstList struct{ end context.CancelFunc }

func (f firstList) Update(list []httpclient.Address) error {
	defer f.end()
	byAddr := func(a, b httpclient.Address) int { return strings.Compare(a.Addr, b.Addr) }
	for _, a := range slices.SortedFunc(slices.Values(list), byAddr) {
		fmt.Println(a.Addr, "weight", a.Weight)
	}
	return nil
}

func (f firstList) Error(err error) { fmt.Println(err) }

func (f firstList) Refresh() <-chan struct{} { return nil }

// show prints what a resolver finds for http://orders.test.
func show(r httpclient.Resolver) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_ = r.Watch(ctx, httpclient.Target{Scheme: "http", Host: "orders.test", Port: "80"}, firstList{cancel})
}

// The records with the lowest priority are used, and their weights.
func ExampleSRV() {
	show(&httpclient.SRV{
		// Leave both functions out to ask DNS.
		Lookup: func(_ context.Context, name string) ([]*net.SRV, error) {
			fmt.Println("records of", name)
			return []*net.SRV{
				{Target: "large.test.", Port: 8080, Priority: 10, Weight: 30},
				{Target: "small.test.", Port: 8081, Priority: 10, Weight: 10},
				{Target: "spare.test.", Port: 8080, Priority: 20},
			}, nil
		},
		DNS: httpclient.DNS{Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			ips := map[string][]netip.Addr{
				"large.test.": {netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")},
				"small.test.": {netip.MustParseAddr("10.0.0.3")},
			}
			return ips[host], nil
		}},
	})
	// Output:
	// records of _http._tcp.orders.test
	// 10.0.0.1:8080 weight 15
	// 10.0.0.2:8080 weight 15
	// 10.0.0.3:8081 weight 10
}

// A file with the list, and two spares that are always there.
func ExampleMerge() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "orders")
	if err := os.WriteFile(path, []byte("# eu-west\n10.0.0.1:8080\n10.0.0.2:8080 2.5\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	show(httpclient.Merge{
		&httpclient.File{Path: path},
		httpclient.Static{
			{Addr: "10.9.0.1:8080", Weight: evenkeel.WeightOf(0.5)},
			{Addr: "10.0.0.1:8080"}, // in the file, too
		},
	})
	// Output:
	// 10.0.0.1:8080 weight absent
	// 10.0.0.2:8080 weight 2.5
	// 10.9.0.1:8080 weight 0.5
}

// A registry with a client of its own.
func ExamplePoll() {
	registry := map[string][]string{"orders.test": {"10.0.0.1:8080", "10.0.0.2:8080"}}
	show(&httpclient.Poll{Func: func(_ context.Context, target httpclient.Target) ([]httpclient.Address, error) {
		instances, ok := registry[target.Host]
		if !ok {
			return nil, errors.New("the registry does not know " + target.Host) // the last list stays
		}
		var list []httpclient.Address
		for _, addr := range instances {
			list = append(list, httpclient.Address{Addr: addr})
		}
		return list, nil
	}})
	// Output:
	// 10.0.0.1:8080 weight absent
	// 10.0.0.2:8080 weight absent
}

// Behind one address there are many machines, so it is worth several connections.
func ExampleMinBackends() {
	show(&httpclient.MinBackends{
		Resolver: httpclient.Static{{Addr: "10.0.0.1:80"}}, // leave it out for DNS
		N:        4,
	})
	// Output:
	// 10.0.0.1:80 weight 0.25
	// 10.0.0.1:80#2 weight 0.25
	// 10.0.0.1:80#3 weight 0.25
	// 10.0.0.1:80#4 weight 0.25
}
