package hash

import "math"

// Jump returns the shard of key, 0 to n-1, for n numbered shards. Going from n to n+1 shards
// moves one key in n+1, all of them to the new one. Source: Lamping and Veach, "A Fast,
// Minimal Memory, Consistent Hash Algorithm" (2014). It needs no table, costs O(log n), and
// gives the same on every machine.
//
// It is for shards whose numbers mean something and that come and go at the end, such as
// partitions of a store. It is wrong for a list of endpoints: when one in the middle goes,
// all behind it change their numbers, and half of all keys move. Use [Rendezvous], [Ring] or
// [Maglev] there.
//
// n below 1 gives -1; beyond 2^31-1 only the first 2^31-1 shards are used.
func Jump(key uint64, n int) int {
	if n < 1 {
		return -1
	}
	limit := int64(min(n, math.MaxInt32))
	shard := int64(-1)
	for next := int64(0); next < limit; {
		shard = next
		key = key*2862933555777941757 + 1
		// The quotient and the product are rounded as IEEE 754 says, and no sum follows
		// that a compiler could fuse them with.
		next = int64(float64(shard+1) * (float64(1<<31) / float64(key>>33+1)))
	}
	return int(shard)
}
