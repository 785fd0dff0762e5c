package main

import (
	"fmt"
	"math/rand/v2"
)

// round is what came of asking for each object once.
type round struct {
	hits   int
	served map[int]string // object → name of the cache that it came from
}

// elsewhere counts the objects that came from another cache than in the round before.
func (r round) elsewhere(before round) (n int) {
	for object, name := range r.served {
		if before.served[object] != name {
			n++
		}
	}
	return n
}

// figures are the rounds of one contender, and how many objects changed their cache when
// the eleventh joined.
type figures struct {
	before, during, after round
	moved                 int
}

// row is a line of the table.
func (f figures) row(name string) string {
	all := float64(len(f.before.served))
	of := func(n int) float64 { return 100 * float64(n) / all }
	return fmt.Sprintf("%-12s %10.1f %% %12.1f %% %8.1f %% %10.1f %%\n",
		name, of(f.before.hits), of(f.during.hits), of(f.after.hits), of(f.moved))
}

// introduction says what is done, and begins the table.
func introduction(s settings) string {
	return fmt.Sprintf(`%d caches of %d objects each, %d objects, each asked for once in a round. Hits
in the round before an eleventh cache joins, in the first one with it, and in the next;
and objects that then came from another cache than before:

                   before    scale-out      after      moved
`, before, s.cache, s.objects)
}

const explanation = `
What is not a hit is work for what the caches protect. One cache more has to take an
eleventh of the objects, 9.1 %; modulo hashing moves ten elevenths, 90.9 %.
`

// order is the objects in another order for each round.
type order struct {
	random  *rand.Rand
	objects int
}

func newOrder(s settings) *order {
	return &order{random: rand.New(rand.NewPCG(s.seed, 0)), objects: s.objects}
}

func (o *order) next() []int { return o.random.Perm(o.objects) }
