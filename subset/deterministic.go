package subset

// Deterministic returns the indices of the client's slice of shuffled endpoints, in ascending
// order, as Google's SRE book has it (chapter "Load Balancing in the Datacenter"): as many
// clients as there are whole slices make a round, every client of a round shuffles the list
// alike, and each takes a slice of its own.
//
// What is left over when the size does not divide the number of endpoints is not used in
// that round; the next one shuffles differently. All used endpoints of a round have exactly
// one client of it. When one endpoint comes or goes, nearly all connections move: use it where
// the list does not change.
//
// It needs the client's Index, and the Seed of the deployment. O(n log n) in time.
func Deterministic(c Client, m Members, size int) ([]int, error) {
	k, err := check(c, m, size)
	if err != nil || k == 0 {
		return nil, err
	}
	got := slice(m.byName(), c.Index, k, func(round int) func(int) int {
		d := draws(mix2(c.Seed, uint64(round)))
		return d.below
	})
	return ascendingInts(got), nil
}

// slice returns the client's k of the endpoints, whose order it changes. source returns
// the random numbers of a round.
func slice(endpoints []int, client, k int, source func(round int) func(n int) int) []int {
	slices := len(endpoints) / k
	round, place := client/slices, client%slices
	shuffle(endpoints, source(round))
	return endpoints[place*k : (place+1)*k]
}
