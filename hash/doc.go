// Package hash maps keys to endpoints so that a key keeps its endpoint while the list of
// endpoints changes: for caches that are warm, sessions that are held, connections that are
// open. It gives affinity and no balance of load: a key that is asked for often stays on one
// endpoint, unless a [Bound] moves some of its requests on.
//
//	structure   when to use it                 lookup       memory               shares         keys moved needlessly
//	Maglev      many endpoints, many lookups   1 load       1–2 bytes a slot     ± 1 slot       1 % of all, mostly less
//	Ring        caches; the least is moved     2 loads      11–14 bytes a point  ± 1/√points    none
//	Rendezvous  up to some hundred endpoints   n products   36–48 bytes each     exact          none
//	Jump        numbered shards, no list       log n steps  none                 exact          half, if one in the middle goes
//
// Maglev has 65,537 slots for all, of 1 byte for up to 256 endpoints, 2 up to 65,536 and 4
// beyond; a Ring has 160 points for a weight of 1. Both hold 40 bytes an endpoint besides.
// Decide by the kind of service and not by how many endpoints there are at the moment: a
// change of structure moves nearly every key. Shares are of the space of keys; of real keys,
// chance alone gives an endpoint with k of them √k more or less.
//
// # Methods
//
// Every structure T but Jump, which is a function, is built by NewT(endpoints, TConfig) and
// has the same methods:
//
//	Lookup(key uint64) int                      index of the owner in the slice given to NewT
//	Candidates(key uint64) iter.Seq[int]        owner first, then who is next, all of them once
//	Walk(key uint64) Walk                       the same, step by step, without an allocation
//	                                            behind an interface too: w.Next() (int, bool)
//	AppendN(dst []int, key uint64, n int) []int the first n of them
//	Update(endpoints []Endpoint) (*T, error)    a new table; the receiver if nothing changed
//	Fingerprint() uint64                        if it is equal in two processes, so are their tables
//	Stats() Stats                               size, and how even the shares are
//
// A key is any 64 bits. [Sum] makes them from text.
//
// # What agrees
//
// Tables follow from the IDs, the weights and the config, by integers alone: not from the
// order of the list, the process, the architecture or what the list was before. Any two
// clients with the same [Maglev.Fingerprint] send every key to the same ID, and so do
// versions of this package with the same major number.
//
// Build tables from members, not from who is healthy. A key whose owner is down goes to the
// first candidate that is up, for as long as it is down, and back; a table without the owner
// would be built twice for each blip, and clients that saw it at different moments would
// disagree meanwhile about more than its keys.
//
// # What to beware of
//
// A ring whose number of points an endpoint depends on the number of endpoints, as in Envoy
// and gRPC (minimum_ring_size divided by the number of hosts, rounded up), loses what rings
// are for: with 1,024 points and ten hosts, the removal of one changes how many points all
// others have, and moves 17 % of the keys instead of 10 %. A larger ring only makes the range
// of sizes wider in which that happens. Where maximum_ring_size binds instead, nearly every
// change moves a large part of all keys. Here the number of points depends on the weight
// alone, and a ring that would be too large is refused.
//
// A few points make an uneven ring: eleven each give the busiest of a hundred hosts twice the
// mean, give or take a half. See [Stats] for what a ring really gives.
//
// Weights that change with the load move keys each time. Derive them from capacity, and let
// them be the same for all clients.
//
// Two tiers that hash the same key need different seeds, or the second gets only the keys
// that the first gives to one of its endpoints and uses a fraction of its own.
//
// # Cost and concurrency
//
// Tables are immutable and safe for concurrent use; lookups take no lock and do not allocate.
// To change one, build the next with Update and publish it in an atomic.Pointer.
// "go test -bench . ./hash" compares each with a plain form in the same run.
//
// Sources: the NSDI 2016 paper on Maglev; Karger et al. 1997 for rings; Thaler and
// Ravishankar 1998 for rendezvous; Lamping and Veach 2014 for jump; XXH64 by Y. Collet.
package hash
