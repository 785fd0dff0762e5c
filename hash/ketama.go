package hash

import (
	"crypto/md5"
	"encoding/binary"
	"strconv"
)

// ketamaPoints is the number of points in one MD5 digest.
const ketamaPoints = 4

// KetamaSum hashes a key for a ring with [RingConfig].Ketama: the first four bytes of its
// MD5 digest as a little-endian number, as libketama does. MD5 is no protection against
// anybody who chooses keys with care.
//
// The ring's points are the four little-endian numbers in the MD5 digest of "ID-k", with k
// from 0: forty digests for a weight of 1, if Points is 160. An ID has to be what the other
// clients take for the server's name, usually "host:port"; libmemcached and spymemcached
// leave out or add a port in some of their modes. For equal weights of 1 that is the same
// ring as theirs. For others it is not: they give a server 40·n·(its share of the weight)
// digests, which depends on all n servers, so that most of the ring changes with each of
// them; here it is 40·weight, which does not.
func KetamaSum(key string) uint64 {
	// The number is put where the ring looks at it: the 32 highest bits.
	var buf [64]byte
	digest := md5.Sum(append(buf[:0], key...))
	return uint64(binary.LittleEndian.Uint32(digest[:])) << 32
}

// appendKetamaPoints is Ring.appendPoints for a ketama ring.
func appendKetamaPoints(dst []uint64, id string, position int, from, to uint32) []uint64 {
	name := append([]byte(id), '-')
	for k := from; k < to; k += ketamaPoints {
		digest := md5.Sum(strconv.AppendUint(name, uint64(k/ketamaPoints), 10))
		for b := 0; b < len(digest); b += 4 {
			dst = append(dst, uint64(binary.LittleEndian.Uint32(digest[b:]))<<32|uint64(position))
		}
	}
	return dst
}
