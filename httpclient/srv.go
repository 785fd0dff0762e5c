package httpclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// SRV is a Resolver that looks up SRV records (RFC 2782), and the addresses of the names that they
// point to; the ports are the records'. The zero value is ready. It must not be changed
// while it is in use.
//
// Of the records, those with the lowest priority are used of which a name has addresses. Whether these
// addresses answer makes no difference: it takes a change in DNS to go on to the next
// priority. The list is one of the priority alone, so that a policy never mixes them.
//
// A record's weight is divided among the addresses of its name, so that names share the requests as their weights
// say however many addresses each has. Weight 0 beside others is little, as the RFC has
// it, and does not drain: a hundredth of the lowest that is not 0. If all are 0 they are equal, as they are
// if all come to the same. An address that several records lead to has their sum.
//
// A name whose addresses cannot be looked up keeps the last ones. One that has none any more
// is left out. Snapshot shows the error of either. Who asks how often, and what becomes of the list when the records
// cannot be found, is as with [DNS].
type SRV struct {
	// Name is what the records are looked up for, whatever the target: "_web._tcp.orders.internal", or
	// "orders.service.consul". Empty means "_http._tcp." and the target's host, with https for a target of that
	// scheme. A target whose host is an IP address then needs no lookup.
	Name string
	// Lookup finds the records of a name. Nil means that of DNS.Resolver. An empty answer without an
	// error empties the target at once; that there are no records is a *net.DNSError with IsNotFound. An error beside
	// records is about others.
	Lookup func(ctx context.Context, name string) ([]*net.SRV, error)
	// DNS says when to look, and how to look up the names that the records point to. 10 s are for all of it.
	DNS DNS
}

const (
	// maxRecords bounds an answer: each may cost a lookup. One message of DNS has room for about 2,000.
	maxRecords = 512
	// namesAtOnce bounds the lookups under way.
	namesAtOnce = 8
	// littleWeight is what a record of weight 0 has of the lowest weight that is not.
	littleWeight = 0.01
)

// Validate reports every problem of the settings, joined, and whether s is nil.
func (s *SRV) Validate() error {
	if s == nil {
		return errors.New("httpclient: Resolver is a nil *SRV, want &SRV{}")
	}
	err := s.DNS.Validate()
	if s.Name != "" && !isHostName(s.Name) {
		err = errors.Join(fmt.Errorf("httpclient: SRV.Name is %q, want a name of letters, digits, '-', '_' and '.'", clip(s.Name)), err)
	}
	return err
}

// Watch looks up the records until ctx is done.
func (s *SRV) Watch(ctx context.Context, target Target, sink Sink) error {
	if err := s.Validate(); err != nil {
		return err
	}
	name := s.Name
	if name == "" {
		if ip, err := netip.ParseAddr(target.Host); err == nil {
			return justIP(ctx, ip, target.port(), sink)
		}
		name = "_" + target.Scheme + "._tcp." + target.Host
	}
	w := srvWatch{srv: s, name: name, seed: maphash.MakeSeed(), gone: absence{forgetAfter: s.DNS.ForgetAfter}}
	return s.DNS.rounds().run(ctx, sink, w.look)
}

// srvWatch is what one Watch remembers.
type srvWatch struct {
	srv  *SRV
	name string
	seed maphash.Seed
	gone absence
	last map[origin][]string // the addresses of each name
}

// origin is where a record points to.
type origin struct {
	name string
	port uint16
}

// lead is a record with the addresses that it leads to.
type lead struct {
	record *net.SRV
	found  []string
	err    error
}

// look looks everything up once.
func (w *srvWatch) look(ctx context.Context) ([]Address, error) {
	records, err := w.records(ctx)
	if err != nil {
		return w.gone.judge(err), err
	}
	w.gone.since = time.Time{}
	var problems []error
	last := map[origin][]string{}
	defer func() { w.last = last }()
	for len(records) > 0 {
		next := slices.IndexFunc(records, func(r *net.SRV) bool { return r.Priority != records[0].Priority })
		if next < 0 {
			next = len(records)
		}
		leads := w.follow(ctx, records[:next])
		for _, l := range leads {
			if l.found != nil {
				last[origin{l.record.Target, l.record.Port}] = l.found
			}
			problems = append(problems, l.err)
		}
		if list := weighed(leads); len(list) > 0 {
			return ordered(list, w.seed), errors.Join(problems...)
		}
		records = records[next:]
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return nil, nil
}

// records returns the usable records, the lowest priority first. The answer is the lookup's own.
func (w *srvWatch) records(ctx context.Context) ([]*net.SRV, error) {
	answer, err := w.lookup(ctx)
	if err != nil && len(answer) == 0 {
		return nil, err
	}
	var records []*net.SRV
	for _, r := range answer {
		// "." says that there is no such service (RFC 2782), and no service has port 0.
		if r != nil && r.Target != "." && r.Port != 0 {
			records = append(records, r)
		}
	}
	switch {
	case len(records) == 0 && len(answer) > 0:
		return nil, &net.DNSError{Err: "no record that points to a service", Name: w.name, IsNotFound: true}
	case len(records) > maxRecords:
		return nil, fmt.Errorf("httpclient: SRV answer for %s has %d records, want at most %d", w.name, len(records), maxRecords)
	}
	slices.SortStableFunc(records, func(a, b *net.SRV) int { return cmp.Compare(a.Priority, b.Priority) })
	return records, nil
}

func (w *srvWatch) lookup(ctx context.Context) ([]*net.SRV, error) {
	if w.srv.Lookup != nil {
		return w.srv.Lookup(ctx, w.name)
	}
	_, answer, err := cmp.Or(w.srv.DNS.Resolver, net.DefaultResolver).LookupSRV(ctx, "", "", w.name)
	return answer, err
}

// follow looks up where the records point to.
func (w *srvWatch) follow(ctx context.Context, records []*net.SRV) []lead {
	leads := make([]lead, len(records))
	turns := make(chan struct{}, namesAtOnce)
	var all sync.WaitGroup
	for i, r := range records {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			leads[i] = w.followOne(ctx, r)
		})
	}
	all.Wait()
	return leads
}

func (w *srvWatch) followOne(ctx context.Context, r *net.SRV) lead {
	if ip, err := netip.ParseAddr(r.Target); err == nil { // against the RFC, and met all the same
		return lead{record: r, found: []string{netip.AddrPortFrom(ip.Unmap(), r.Port).String()}}
	}
	found, err := w.srv.DNS.find(ctx, r.Target, r.Port)
	var de *net.DNSError
	if err != nil && !(errors.As(err, &de) && de.IsNotFound) {
		found = w.last[origin{r.Target, r.Port}]
	}
	return lead{record: r, found: found, err: err}
}

// weighed makes the list of the records of one priority.
func weighed(leads []lead) []Address {
	var lowest uint16 // that is not 0
	for _, l := range leads {
		if w := l.record.Weight; w > 0 && len(l.found) > 0 && (lowest == 0 || w < lowest) {
			lowest = w
		}
	}
	sums := map[string]float64{}
	var list []Address
	for _, l := range leads {
		w := float64(l.record.Weight)
		if w == 0 {
			w = 1
			if lowest > 0 {
				w = littleWeight * float64(lowest)
			}
		}
		for _, addr := range l.found {
			if sums[addr] == 0 {
				list = append(list, Address{Addr: addr})
			}
			sums[addr] += w / float64(len(l.found))
		}
	}
	if len(list) == 0 {
		return nil
	}
	equal := true
	for _, a := range list {
		equal = equal && sums[a.Addr] == sums[list[0].Addr]
	}
	if equal {
		return list
	}
	for i, a := range list {
		list[i].Weight = evenkeel.WeightOf(max(sums[a.Addr], picker.MinWeight))
	}
	return list
}
