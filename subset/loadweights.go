package subset

import (
	"errors"
	"fmt"
)

// Bounds of the work of [LoadWeights].
const (
	maxShares = 1 << 26 // pairs of a client and an endpoint that it has
	maxRounds = 40
	// evenEnough is the largest relative difference from the mean load that is left alone.
	evenEnough = 0.002
)

// LoadWeights returns a factor for each endpoint of the list, whether this client has it or not.
// When every client multiplies its endpoints' weights with the factors and sends its requests
// in proportion to the products, and all clients send alike, each endpoint gets load in
// proportion to its own weight, although subsets differ in size. The mean factor is 1, and
// 1 is that of endpoints of weight 0 and of those that no client has.
//
// All clients compute the same, from the Seed, the Count and the list: the index does not
// matter, and no connection depends on it. It takes O(Count·n/lot) time and memory and is refused
// beyond 2^26 of these: each lot is dealt, and then the factors are scaled until they fit
// (Sinkhorn's iteration).
func LoadWeights(c Client, m Members, lot Lot) ([]float64, error) {
	err := errors.Join(c.validate(), m.Validate(), lot.validate())
	if c.Count == 0 {
		err = errors.Join(err, fmt.Errorf("subset: Client.Count is 0, want the number of clients for LoadWeights"))
	}
	if err != nil {
		return nil, err
	}
	n := len(m.IDs)
	if lots := (c.Count + lot.Clients - 1) / lot.Clients; lots > 0 && n > maxShares/lots {
		return nil, fmt.Errorf("subset: LoadWeights has %d lots of %d endpoints to deal, want at most %d pairs", lots, n, maxShares)
	}
	s := dealShares(c, m, lot)
	// Of each endpoint: the load it is to have, by which its product starts.
	wanted, product := make([]float64, n), make([]float64, n)
	s.targets(m, wanted)
	copy(product, wanted)
	load := make([]float64, n)
	for range maxRounds {
		s.loads(product, load)
		worst := 0.0
		for i, want := range wanted {
			if want > 0 && load[i] > 0 {
				ratio := load[i] / want
				worst = max(worst, ratio-1, 1-ratio)
				product[i] /= ratio
			}
		}
		if worst <= evenEnough {
			break
		}
	}
	return factors(product, wanted), nil
}

// shares says who has what.
type shares struct {
	ends      []int   // where each client's endpoints end in endpoints
	endpoints []int32 // those of the first client, of the second, and so on
}

func dealShares(c Client, m Members, lot Lot) shares {
	n := len(m.IDs)
	lots := (c.Count + lot.Clients - 1) / lot.Clients
	s := shares{ends: make([]int, 0, c.Count), endpoints: make([]int32, 0, lots*n)}
	hashed := m.candidates(c.Seed)
	list := make([]candidate, n)
	for l := range lots {
		copy(list, hashed)
		lot.dealAll(list, l, func(client int, got []candidate) {
			if l*lot.Clients+client >= c.Count {
				return
			}
			for _, g := range got {
				s.endpoints = append(s.endpoints, g.at)
			}
			s.ends = append(s.ends, len(s.endpoints))
		})
	}
	return s
}

// each calls f with the endpoints of every client.
func (s shares) each(f func(endpoints []int32)) {
	from := 0
	for _, end := range s.ends {
		f(s.endpoints[from:end])
		from = end
	}
}

// targets sets the load that each endpoint that somebody has is to get: in proportion to its
// weight, with a sum of one for each client that has an endpoint with weight.
func (s shares) targets(m Members, wanted []float64) {
	heaviest := 1.0
	if len(m.Weights) > 0 {
		heaviest = 0
		for _, w := range m.Weights {
			heaviest = max(heaviest, w)
		}
	}
	for _, i := range s.endpoints {
		switch {
		case m.Weights == nil:
			wanted[i] = 1
		case heaviest > 0:
			wanted[i] = m.Weights[i] / heaviest
		}
	}
	clients := 0
	s.each(func(endpoints []int32) {
		for _, i := range endpoints {
			if wanted[i] > 0 {
				clients++
				return
			}
		}
	})
	sum := 0.0
	for _, w := range wanted {
		sum += w
	}
	for i := range wanted {
		if sum > 0 {
			wanted[i] *= float64(clients) / sum
		}
	}
}

// loads sets what each endpoint gets when every client spreads a load of one in
// proportion to the products.
func (s shares) loads(product, load []float64) {
	clear(load)
	s.each(func(endpoints []int32) {
		sum := 0.0
		for _, i := range endpoints {
			sum += product[i]
		}
		if sum <= 0 {
			return
		}
		for _, i := range endpoints {
			load[i] += product[i] / sum
		}
	})
}

// factors divides what the weights alone would give out of the products.
func factors(product, wanted []float64) []float64 {
	out := make([]float64, len(product))
	sum, n := 0.0, 0
	for i, want := range wanted {
		out[i] = 1
		if want > 0 {
			out[i] = product[i] / want
			sum += out[i]
			n++
		}
	}
	for i, want := range wanted {
		if want > 0 {
			out[i] *= float64(n) / sum
		}
	}
	return out
}
