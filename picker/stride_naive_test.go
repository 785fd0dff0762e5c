package picker

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// naiveStride walks from slot to slot and adds weights up, in integers without bounds. The
// order of the slots is taken from the table.
type naiveStride struct {
	random  func() uint64
	list    []Endpoint
	inTable []string // whose table it is
	slots   []string
	at      int
	seats   map[string]int32
	part    map[string]*big.Int
	add     map[string]*big.Int
}

var wholeTurn = shifted(big.NewInt(1))

// table lays the slots out and returns what each begins with in a new rotation.
func (o *naiveStride) table(in []string) map[string]*big.Int {
	weights := make([]uint64, len(o.list))
	n, sum, top := int64(0), int64(0), int64(0)
	for i, e := range o.list {
		if w := int64(e.Weight.Value()); w > 0 && slices.Contains(in, e.ID) {
			weights[i] = uint64(w)
			n++
			sum += w
			top = max(top, w)
		}
	}
	plain := 2*top*n <= 5*sum
	turn := top
	if !plain {
		turn = max(sum/(4*n), 1)
	}
	o.inTable, o.slots, o.add = in, nil, map[string]*big.Int{}
	begin := map[string]*big.Int{}
	seats := make([]int32, len(o.list))
	for i, e := range o.list {
		seats[i] = o.seats[e.ID]
	}
	for _, s := range newStrideTable(weights, seats).slots {
		o.slots = append(o.slots, o.list[s.member].ID)
	}
	nth := int64(0)
	for i, e := range o.list {
		w := int64(weights[i])
		if w == 0 {
			continue
		}
		o.add[e.ID] = roundUp(big.NewInt(w), big.NewInt((w+turn-1)/turn*turn))
		if plain {
			begin[e.ID] = roundUp(big.NewInt(nth*32767%65535), big.NewInt(65535))
		} else {
			begin[e.ID] = new(big.Int).SetUint64(uint64(i+1) * spreadStarts)
		}
		nth++
	}
	return begin
}

func roundUp(a, b *big.Int) *big.Int {
	q, rest := new(big.Int).DivMod(shifted(a), b, new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// seat gives those that stay their seats, and the others the first free ones.
func (o *naiveStride) seat(old map[string]int32) {
	taken := map[int32]bool{}
	for _, e := range o.list {
		if seat, ok := old[e.ID]; ok {
			o.seats[e.ID] = seat
			taken[seat] = true
		}
	}
	for _, e := range o.list {
		if _, ok := old[e.ID]; !ok {
			for taken[o.seats[e.ID]] {
				o.seats[e.ID]++
			}
			taken[o.seats[e.ID]] = true
		}
	}
}

// visit makes the next visit and returns whom it picks.
func (o *naiveStride) visit() (id string, picked bool) {
	id = o.slots[o.at]
	o.at = (o.at + 1) % len(o.slots)
	sum := new(big.Int).Add(o.part[id], o.add[id])
	if picked = sum.Cmp(wholeTurn) >= 0; picked {
		sum.Sub(sum, wholeTurn)
	}
	o.part[id] = sum
	return id, picked
}

func (o *naiveStride) update(list []Endpoint) {
	old, seats := o.part, o.seats
	o.list, o.part, o.seats = list, map[string]*big.Int{}, map[string]int32{}
	o.seat(seats)
	var all []string
	for _, e := range list {
		o.part[e.ID] = new(big.Int).SetUint64(o.random())
		if was, ok := old[e.ID]; ok {
			o.part[e.ID] = was
		}
		all = append(all, e.ID)
	}
	if old != nil {
		o.goOn(all)
		return
	}
	begin := o.table(all)
	for range visitsAnywhere {
		n := big.NewInt(int64(len(o.slots)))
		product := n.Mul(n, new(big.Int).SetUint64(o.random()))
		low := new(big.Int).And(product, new(big.Int).Sub(wholeTurn, big.NewInt(1)))
		at, round := int(product.Rsh(product, 64).Int64()), low.Rsh(low, 32).Int64()
		for id, b := range begin {
			visits := int64(0)
			for k, other := range o.slots {
				if other == id {
					visits += round
					if k < at {
						visits++
					}
				}
			}
			part := big.NewInt(visits)
			part.Add(part.Mul(part, o.add[id]), b)
			o.part[id] = part.Mod(part, wholeTurn)
		}
		o.at = at
		id := o.slots[at]
		if new(big.Int).Add(o.part[id], o.add[id]).Cmp(wholeTurn) >= 0 {
			return
		}
	}
}

// goOn lays the slots out anew without losing the place.
func (o *naiveStride) goOn(in []string) {
	order := append(slices.Clone(o.slots[o.at:]), o.slots[:o.at]...)
	was, of := o.at, len(o.slots)
	o.table(in)
	o.at = was * len(o.slots) / of
	for _, id := range order {
		if slices.Contains(o.slots, id) {
			for o.slots[o.at] != id {
				o.at = (o.at + 1) % len(o.slots)
			}
			return
		}
	}
}

func (o *naiveStride) watch(ids []string) {
	if len(ids) == 0 {
		return
	}
	var all, everybody []string
	weight := map[string]float64{}
	sum := func(ids []string) (w float64) {
		for _, id := range ids {
			w += weight[id]
		}
		return w
	}
	for _, e := range o.list {
		weight[e.ID] = e.Weight.Value()
		everybody = append(everybody, e.ID)
		if e.Weight.Value() > 0 {
			all = append(all, e.ID)
		}
	}
	covered := func(id string) bool { return slices.Contains(o.inTable, id) }
	complete := len(o.inTable) == len(o.list)
	available := sum(ids)
	out := func(of float64) bool { return of-available > math.Floor(of/4) }
	switch {
	case !out(sum(all)):
		if !complete {
			o.goOn(everybody)
		}
	case complete || out(sum(o.inTable)) || slices.ContainsFunc(ids, func(id string) bool { return !covered(id) }):
		o.goOn(ids)
	}
}

func (o *naiveStride) pick(ids []string) string {
	for range visitsInTurn {
		if id, picked := o.visit(); picked && slices.Contains(ids, id) {
			return id
		}
	}
	for range visitsAnywhere {
		n := big.NewInt(int64(len(o.slots)))
		product := n.Mul(n, new(big.Int).SetUint64(o.random()))
		low := new(big.Int).And(product, new(big.Int).Sub(wholeTurn, big.NewInt(1)))
		id := o.slots[product.Rsh(product, 64).Int64()]
		if low.Add(low, o.add[id]).Cmp(wholeTurn) >= 0 && slices.Contains(ids, id) {
			return id
		}
	}
	return "nobody"
}

func TestStrideIsTheNaiveOneUnderRandomUpdates(t *testing.T) {
	for seed := range uint64(20) {
		oracle := &naiveStride{random: rand.New(rand.NewPCG(7, 7)).Uint64}
		randomOperations(t, rand.New(rand.NewPCG(seed, 6)), WeightedRoundRobin{}, operations{
			update: oracle.update,
			watch:  oracle.watch,
			pick:   oracle.pick,
		})
	}
}
