package hash

import (
	"math"
	"math/bits"
)

// A point is a place on the circle and its owner in one word: the place in the high 40
// bits, the owner's position in the list in the low 24. Points of equal place thus have the
// order of their owners' IDs. The split does not follow the number of endpoints, which
// would move every point by a hair when it changes.
const (
	ownerBits = 24
	ownerMask = 1<<ownerBits - 1
)

// circle is a sorted set of points with an index into it. It is immutable.
type circle struct {
	// points holds the points in order and, behind them, the first one again at the largest
	// place, so that a search always ends.
	points []uint64
	// starts[b] is where the points of bucket b begin: those whose places have the highest
	// bits b. There are about as many buckets as points.
	starts []uint32
	shift  uint // from a place to its bucket
}

// count returns the number of points.
func (c *circle) count() uint32 { return uint32(len(c.points) - 1) }

// find returns the index of the first point at or after the place, 0 to count(); count()
// stands for the first point.
func (c *circle) find(place uint64) int {
	place &^= ownerMask
	// The shift is below 64; saying so saves the check for larger ones.
	i := int(c.starts[place>>(c.shift&63)])
	for c.points[i] < place {
		i++
	}
	return i
}

// newCircle returns the circle of at least one point, which come in any order. They are
// counted and put into their buckets, and then sorted within each, where there are one or
// two.
func newCircle(unsorted []uint64) circle {
	c := emptyCircle(len(unsorted))
	// Counts are kept two buckets further on: summed up, next[b+1] is where bucket b
	// begins, and when all its points are put there, where bucket b+1 does.
	next := make([]uint32, len(c.starts)+2)
	for _, p := range unsorted {
		next[p>>c.shift+2]++
	}
	for b := 2; b < len(next); b++ {
		next[b] += next[b-1]
	}
	for _, p := range unsorted {
		b := p>>c.shift + 1
		c.points[next[b]] = p
		next[b]++
	}
	copy(c.starts, next)
	// No point is far from its place, so insertion is a step or two.
	points := c.points[:len(unsorted)]
	for i := 1; i < len(points); i++ {
		p, j := points[i], i
		for ; j > 0 && points[j-1] > p; j-- {
			points[j] = points[j-1]
		}
		points[j] = p
	}
	c.close()
	return c
}

// emptyCircle returns a circle with room for n points, not filled in.
func emptyCircle(n int) circle {
	// Between three quarters and one and a half buckets a point.
	width := max(bits.Len(uint(n+n/2))-1, 1)
	return circle{
		points: make([]uint64, n+1),
		starts: make([]uint32, 1<<width),
		shift:  uint(64 - width),
	}
}

// close puts the first point behind the last.
func (c *circle) close() {
	n := c.count()
	c.points[n] = math.MaxUint64&^ownerMask | c.points[0]&ownerMask
}

// arcs returns how much of the circle each of n owners has, in 2^-40 of it.
func (c *circle) arcs(n int) []uint64 {
	arcs := make([]uint64, n)
	last := c.count() - 1
	before := c.points[last] >> ownerBits
	for _, p := range c.points[:c.count()] {
		// Unsigned: from the last point to the first it goes through 0.
		arcs[p&ownerMask] += (p>>ownerBits - before) & (1<<(64-ownerBits) - 1)
		before = p >> ownerBits
	}
	if first := c.points[0]; first>>ownerBits == c.points[last]>>ownerBits {
		arcs[first&ownerMask] = 1 << (64 - ownerBits) // all are one place, most often of one point
	}
	return arcs
}

// bytes returns the memory that the circle holds.
func (c *circle) bytes() int { return 8*len(c.points) + 4*len(c.starts) }
