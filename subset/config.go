package subset

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// Algorithm names a way of choosing a subset.
type Algorithm uint8

// The algorithms; the package's documentation compares them.
const (
	// Auto is Deal for a client that has an index, and Rendezvous for one that has none.
	Auto Algorithm = iota
	// UseRendezvous is [Rendezvous].
	UseRendezvous
	// UseDeal is [Deal], with lots that are held and, if the number of clients is known, [LoadWeights].
	UseDeal
	// UseRocksteadier is [Rocksteadier]. A pool and its adapters know no ordinals of endpoints:
	// there it goes by their names.
	UseRocksteadier
	// UseAperture is [Aperture].
	UseAperture
	// UseDeterministic is [Deterministic].
	UseDeterministic
)

var algorithmNames = []string{"auto", "rendezvous", "deal", "rocksteadier", "aperture", "deterministic"}

// String returns the name in lower case, "auto" for Auto.
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) {
		return algorithmNames[a]
	}
	return fmt.Sprintf("algorithm %d", uint8(a))
}

// ParseAlgorithm returns the algorithm with that name in lower case.
func ParseAlgorithm(name string) (Algorithm, error) {
	for i, n := range algorithmNames {
		if n == name {
			return Algorithm(i), nil
		}
	}
	return 0, fmt.Errorf("subset: the algorithm is %q, want one of %s", clip(name), strings.Join(algorithmNames, ", "))
}

// smallSize is the size below which [Config.Warnings] says something: two choices of three
// are no choice, and Finagle has found that two of fewer than twelve are little of one.
const smallSize = 12

// Config says which part of a fleet a client uses. The zero Config is a random part of
// [DefaultSize] endpoints.
type Config struct {
	// Algorithm chooses. Auto goes by whether there is an index.
	Algorithm Algorithm
	// Size is how many endpoints a client is to have; 0 means [DefaultSize]. A list of up to
	// that many is used whole. Algorithms keep to it in their own way: Deal gives 0.6 to
	// 1.5 times that many on average over the clients.
	Size int
	// ClientIndex is the client's index from 0, which all algorithms but Rendezvous need. The
	// indices of a deployment are different and without big gaps.
	ClientIndex Index
	// ClientCount is the number of clients of the deployment; 0 if it is not known.
	// Aperture needs it, and Deal then evens the load out.
	ClientCount int
	// Seed is the same for all clients of one deployment, and better another one for another
	// deployment. Rendezvous takes it together with the index, or without an index by
	// itself: there it has to be the client's own (see [Identity]), and 0 means a random one.
	Seed uint64
	// MinAvailable is how many endpoints that are not known to be down the client is to have; while
	// there are fewer, further ones are added, at most Size of them. 0 means half of
	// Size, rounded up; -1 means that none are added, and that endpoints which are all drained are used.
	MinAvailable int
	// LotSize, above 0, fixes the size of Deal's lots, a power of two, in place of Size: for
	// deployments whose clients must agree on it at any time.
	LotSize int
	// MaxSize, above Size, lets the subset follow the client's load: it is to have one
	// endpoint for each LoadPerEndpoint of what [Selector.SetLoad] was told, from Size up to MaxSize.
	// 0 means that it does not.
	MaxSize int
	// LoadPerEndpoint is in the unit of [Selector.SetLoad], such as requests a second. It must be
	// above 0 with MaxSize, and 0 without.
	LoadPerEndpoint float64
}

func (c Config) size() int {
	if c.Size == 0 {
		return DefaultSize
	}
	return c.Size
}

func (c Config) minAvailable() int {
	switch c.MinAvailable {
	case 0:
		return (c.size() + 1) / 2
	case -1:
		return 0
	}
	return c.MinAvailable
}

// Validate reports every problem of the configuration, joined; nil if there is none. It does
// not look an index up: see [NewSelector].
func (c Config) Validate() error {
	var p problemList
	if int(c.Algorithm) >= len(algorithmNames) {
		p.add("subset: Config.Algorithm is %d, want 0 to %d", c.Algorithm, len(algorithmNames)-1)
	}
	if c.Size < 0 || c.Size > MaxMembers {
		p.add("subset: Config.Size is %d, want 1 to %d, or 0 for %d", c.Size, MaxMembers, DefaultSize)
	}
	if c.MinAvailable < -1 || c.MinAvailable > MaxMembers {
		p.add("subset: Config.MinAvailable is %d, want 1 to %d, 0 for half of the size, or -1 for none", c.MinAvailable, MaxMembers)
	}
	c.checkClient(&p)
	c.checkFollowing(&p)
	if c.LotSize != 0 && (c.LotSize < 0 || c.LotSize > 1<<maxLotLevel || bits.OnesCount(uint(c.LotSize)) != 1) {
		p.add("subset: Config.LotSize is %d, want a power of two up to %d, or 0 to go by Size", c.LotSize, 1<<maxLotLevel)
	}
	return p.join()
}

func (c Config) checkClient(p *problemList) {
	if c.ClientCount < 0 || c.ClientCount > MaxClients {
		p.add("subset: Config.ClientCount is %d, want 1 to %d, or 0 if it is not known", c.ClientCount, MaxClients)
	} else if c.ClientCount == 0 && c.Algorithm == UseAperture {
		p.add("subset: Config.ClientCount is 0, want the number of clients for aperture")
	} else if c.ClientCount > 0 && c.ClientIndex.Source == GivenIndex && c.ClientIndex.Value >= c.ClientCount {
		p.add("subset: Config.ClientIndex is %d, want less than Config.ClientCount, %d", c.ClientIndex.Value, c.ClientCount)
	}
	switch {
	case c.ClientIndex.Source > HostIndex:
		p.add("subset: Config.ClientIndex.Source is %d, want 0 to %d", c.ClientIndex.Source, HostIndex)
	case c.ClientIndex.Source == GivenIndex && (c.ClientIndex.Value < 0 || c.ClientIndex.Value >= MaxClients):
		p.add("subset: Config.ClientIndex is %d, want 0 to %d", c.ClientIndex.Value, MaxClients-1)
	case c.ClientIndex.Source == NoIndex && c.Algorithm > UseRendezvous:
		p.add("subset: Config.ClientIndex is not set, want an index for %v", c.Algorithm)
	case c.ClientIndex.Source == EnvironmentIndex && c.ClientIndex.Variable == "":
		p.add("subset: Config.ClientIndex.Variable is empty, want the name of an environment variable")
	}
}

func (c Config) checkFollowing(p *problemList) {
	if c.MaxSize != 0 && (c.MaxSize < c.size() || c.MaxSize > MaxMembers) {
		p.add("subset: Config.MaxSize is %d, want Size, %d, to %d, or 0 for a fixed size", c.MaxSize, c.size(), MaxMembers)
	}
	switch v := c.LoadPerEndpoint; {
	case c.MaxSize == 0 && v != 0:
		p.add("subset: Config.LoadPerEndpoint is %v, want 0 without MaxSize", v)
	case c.MaxSize != 0 && (!(v > 0) || math.IsInf(v, 1)):
		p.add("subset: Config.LoadPerEndpoint is %v, want a finite number above 0 with MaxSize", v)
	}
	if c.LotSize != 0 && c.MaxSize != 0 {
		p.add("subset: Config.LotSize is %d, want 0 with MaxSize", c.LotSize)
	}
}

// Warnings returns what is allowed and may still not be what is meant; nil if there is nothing.
// Show them once, where people look.
func (c Config) Warnings() []string {
	var out []string
	if s := c.size(); s < smallSize && c.LotSize == 0 {
		out = append(out, fmt.Sprintf("subset: Config.Size is %d: with fewer than %d endpoints, "+
			"choosing the better of a few has little to choose from, and one slow endpoint is a large part", s, smallSize))
	}
	if c.ClientIndex.Source == NoIndex && (c.ClientCount > 0 || c.LotSize > 0) {
		out = append(out, fmt.Sprintf("subset: Config.ClientIndex is not set: without it, Config.ClientCount, %d, and Config.LotSize, %d, do not count",
			c.ClientCount, c.LotSize))
	}
	if s := c.size(); c.MinAvailable > s {
		out = append(out, fmt.Sprintf("subset: Config.MinAvailable is %d, above Size, %d: subsets are topped up all the time", c.MinAvailable, s))
	}
	return out
}

// client resolves the index. ok is whether there is one.
func (c Config) client() (client Client, ok bool, err error) {
	err = c.Validate()
	var index int
	if x := c.ClientIndex; err == nil || x.Source == HostIndex || x.Source == EnvironmentIndex && x.Variable != "" {
		var lost error
		if index, ok, lost = x.Resolve(); lost != nil {
			err = errors.Join(err, lost)
		}
	}
	if err != nil {
		return Client{}, false, err
	}
	client = Client{Index: index, Seed: c.Seed}
	if ok {
		client.Count = c.ClientCount
	}
	return client, ok, client.validate()
}
