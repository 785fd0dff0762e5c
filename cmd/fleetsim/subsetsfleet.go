package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/evenkeel/evenkeel/subset"
)

// subsetsFleet is a number of clients that all choose by one algorithm.
type subsetsFleet struct {
	subsetsSettings
	scheme  scheme
	workers int
	lot     int // held by Deal
}

// scheme is an algorithm with what it is told.
type scheme struct {
	name     string
	needs    string
	ordinals bool // of the endpoints
	weights  bool // for even load
	deal     bool
	choose   func(c subset.Client, m subset.Members, size int) ([]int, error) // if it is not Deal
}

var schemes = []scheme{
	{name: "rendezvous", needs: "nothing", choose: subset.Rendezvous},
	{name: "deal", needs: "the index", deal: true},
	{name: "deal, weighted", needs: "the index and the number of clients", deal: true, weights: true},
	{name: "rocksteadier", needs: "the client's index and those of the endpoints", ordinals: true, choose: subset.Rocksteadier},
	{name: "rocksteadier, by name", needs: "the index", choose: subset.Rocksteadier},
	{name: "aperture", needs: "the index and the number of clients", weights: true, choose: func(c subset.Client, m subset.Members, size int) ([]int, error) {
		got, _, err := subset.Aperture(c, m, size)
		return got, err
	}},
	{name: "deterministic", needs: "the index", choose: subset.Deterministic},
}

// views are the numbers of the endpoints that each client has, in ascending order.
type views [][]int

// list returns the endpoints with these numbers.
func (f *subsetsFleet) list(endpoints []int) subset.Members {
	m := subset.Members{IDs: make([]string, len(endpoints))}
	for i, e := range endpoints {
		// Addresses in no order: what comes next by number may be anywhere by name.
		address := uint32(e) * 0x9e3779b1 & 0xffffff
		m.IDs[i] = fmt.Sprintf("10.%d.%d.%d:8080", address>>16, address>>8&255, address&255)
	}
	if f.scheme.ordinals {
		m.Ordinals = endpoints
	}
	return m
}

// client returns one of the clients, of count.
func (f *subsetsFleet) client(i, count int) subset.Client {
	c := subset.Client{Index: i, Count: count, Seed: uint64(f.seed)}
	if f.scheme.name == "rendezvous" {
		c.Seed = subset.Identity(fmt.Sprintf("client-%d of fleet %d", i, f.seed))
	}
	return c
}

// choose returns what all clients have of the endpoints with these numbers. The lots
// of Deal are held from one list to the next.
func (f *subsetsFleet) choose(endpoints []int, count int) (views, error) {
	m := f.list(endpoints)
	f.lot = subset.LotSize(len(endpoints), f.size, f.lot)
	out, errs := make(views, f.clients), make([]error, f.clients)
	var wait sync.WaitGroup
	for w := range f.workers {
		wait.Go(func() {
			for i := w; i < f.clients; i += f.workers {
				out[i], errs[i] = f.one(f.client(i, count), m)
				for k, at := range out[i] {
					out[i][k] = endpoints[at]
				}
				slices.Sort(out[i])
			}
		})
	}
	wait.Wait()
	return out, errors.Join(errs...)
}

func (f *subsetsFleet) one(c subset.Client, m subset.Members) ([]int, error) {
	if f.scheme.deal {
		return subset.DealLot(c, m, f.lots())
	}
	return f.scheme.choose(c, m, f.size)
}

func (f *subsetsFleet) lots() subset.Lot {
	return subset.Lot{Clients: f.lot, Exact: subset.DefaultExact}
}

// loads returns the load of each endpoint of the list when every client spreads a load of
// one over what it has, by factors where the algorithm gives them.
func (f *subsetsFleet) loads(v views, endpoints []int) ([]float64, error) {
	m := f.list(endpoints)
	at := make(map[int]int, len(endpoints))
	for i, e := range endpoints {
		at[e] = i
	}
	factor := make([]float64, len(endpoints))
	for i := range factor {
		factor[i] = 1
	}
	if f.scheme.weights && f.scheme.deal {
		var err error
		if factor, err = subset.LoadWeights(f.client(0, f.clients), m, f.lots()); err != nil {
			return nil, err
		}
	}
	load := make([]float64, len(endpoints))
	for c, own := range v {
		if f.scheme.weights && !f.scheme.deal {
			got, parts, err := subset.Aperture(f.client(c, f.clients), m, f.size)
			if err != nil {
				return nil, err
			}
			for k, i := range got {
				factor[i] = parts[k]
			}
		}
		sum := 0.0
		for _, e := range own {
			sum += factor[at[e]]
		}
		for _, e := range own {
			load[at[e]] += factor[at[e]] / sum
		}
	}
	return load, nil
}

// opened counts the connections of after that are not in before.
func opened(before, after views) int {
	n := 0
	for c := range after {
		old := before[c]
		for _, e := range after[c] {
			if _, had := slices.BinarySearch(old, e); !had {
				n++
			}
		}
	}
	return n
}
