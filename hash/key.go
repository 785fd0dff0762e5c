package hash

import "github.com/cespare/xxhash/v2"

// Sum returns the hash of a key: XXH64 with seed 0, which is what Envoy and gRPC hash keys
// with. It is the same in every process, on every machine and in every version. It costs a
// few nanoseconds for a short key and does not allocate.
func Sum(key string) uint64 { return xxhash.Sum64String(key) }

// SumBytes is [Sum] of a key in bytes.
func SumBytes(key []byte) uint64 { return xxhash.Sum64(key) }

// SumSeed is XXH64 of key with a seed. SumSeed(key, 0) is Sum(key). Tables have a Seed of
// their own; this one is for hashing one text in two ways.
func SumSeed(key string, seed uint64) uint64 {
	if seed == 0 {
		return xxhash.Sum64String(key)
	}
	return xxh64(key, seed)
}

// xxh64 is XXH64 with a seed.
func xxh64(s string, seed uint64) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(seed)
	_, _ = d.WriteString(s) // never fails
	return d.Sum64()
}

const (
	// golden is 2^64 divided by the golden ratio, made odd: multiples of it are spread as
	// evenly as can be (Knuth, The Art of Computer Programming, volume 3, 6.4).
	golden = 0x9e3779b97f4a7c15
	// idDomain is the seed that IDs are hashed with, so that a key spelt like an ID has
	// nothing to do with that ID's place.
	idDomain = 0x6576656e6b65656c // "evenkeel"
)

// spread makes a key's hash fit for tables that look at its high bits. The product spreads
// keys that are no hashes at all, such as consecutive numbers; the seed is xored, because
// adding it would turn every table by the same angle and keep neighbours together.
func spread(key, keySeed uint64) uint64 { return (key ^ keySeed) * golden }

// scatter makes a spread hash fit for a table of which each part is at equal distances, as an
// endpoint's slots of a Maglev table are. Keys at equal distances still are after spread, and
// where both agree an endpoint gets several times its share, or none: of a hundred, for
// multiples of 16, from 0.01 to 3.5 times in sixty tables. Here the highest 17 bits are xored
// with those from 30 to 46, which have nothing to do with them. It is a bijection, at a third
// of what mix64 costs.
func scatter(h uint64) uint64 { return h ^ h<<17 }

// mix64 is a bijection of 64 bits in which every bit of the result depends on every bit of
// x; 0 stays 0. Source: the finalizer of Steele, Lea and Flood, "Fast Splittable
// Pseudorandom Number Generators" (2014), with Stafford's constants (variant 13).
func mix64(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
