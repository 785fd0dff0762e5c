package subset

import "github.com/cespare/xxhash/v2"

// mix is the finaliser of splitmix64: a bijection in which each bit of x changes each bit
// of the result half of the time.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// mix2 and mix3 hash two and three numbers, whose order matters. Subsets depend on their
// every bit: another constant here moves the connections of everybody.
func mix2(a, b uint64) uint64 {
	return mix(mix(a*0x9e3779b97f4a7c15+0x1234567) ^ (b*0xd1b54a32d192ed03 + 0x7654321))
}

func mix3(a, b, c uint64) uint64 { return mix3of(mix2(a, b), c) }

// mix3of goes on from mix2, which is the same for all endpoints of one node.
func mix3of(ab, c uint64) uint64 { return mix(ab ^ (c*0x8cb92ba72f3d8dd7 + 0x55)) }

// Identity returns a seed that is the same wherever the name is: for [Client.Seed] from the
// name of a pod or a host, so that a restart finds its subset again.
func Identity(name string) uint64 { return xxhash.Sum64String(name) }

// endpointHash is what an endpoint is to the hashed algorithms: its ID and nothing else
// of it, so that an attribute or a weight that changes moves nothing.
func endpointHash(seed uint64, id string) uint64 { return mix2(seed, xxhash.Sum64String(id)) }

// draws is a small source of random numbers for shuffles that all clients repeat.
type draws uint64

// below returns a number from 0 to n-1. The bias of 2^-32·n is far below what a subset
// could show.
func (d *draws) below(n int) int {
	*d += 0x9e3779b97f4a7c15
	return int(mix(uint64(*d)) >> 32 * uint64(n) >> 32)
}

// shuffle is Fisher and Yates's, from the end; below(n) draws from 0 to n-1.
func shuffle(list []int, below func(n int) int) {
	for i := len(list) - 1; i > 0; i-- {
		j := below(i + 1)
		list[i], list[j] = list[j], list[i]
	}
}
