// Package picker chooses which endpoint gets a request, and learns from how the
// request went. It is the core that the gRPC and HTTP adapters share, and it can be
// used alone in an RPC stack of your own; most users want evenkeel.Pool around it,
// which adds handles, states and housekeeping.
//
// # The parts
//
// A [Registry] keeps one [Record] per endpoint ID. [Registry.Members] turns a list of
// [Endpoint] into immutable Members; a [Policy] builds a [Picker] for them;
// [NewSnapshot] puts both together with who is available. [Snapshot.Pick] chooses
// and returns a [Pick], whose Done ends the request and teaches the record what
// [Registry.Learn] was told to learn (the policy's Needs); [Registry.Sweep] and
// [Snapshot.Sweep] belong once a second.
//
// # Which policy
//
// Start with [Adaptive], the default, and leave it for a reason.
//
//	policy                     goes by             a pick costs      many clients           its failure mode
//	RoundRobin                 nothing             O(1)              as good as one         a slow or failing endpoint gets a full share
//	Random                     nothing             O(1)              as good as one         the same, and uneven by chance
//	WeightedRoundRobin, EDF    weights             O(1); O(log n)¹   as good as one         weights that are wrong, or that change too late
//	SmoothWeightedRoundRobin   weights             O(n)¹             start in step          the same
//	WeightedRandom             weights             O(1)              as good as one         the same, and uneven by chance
//	WeightedLeastRequest       weights, in flight  O(log n)¹         counts thin out        a busy endpoint is looked at only when its turn comes
//	Least, InFlight            in flight           O(n)              counts thin out        failing fast looks idle: over half of all requests
//	Least, LoadTable           a table you supply  O(n)              all pick the same one  herds for as long as the table is old
//	P2C, InFlight              in flight           O(1)              counts thin out        failing fast looks idle: up to 2/n of all requests
//	P2C, Latency               expected wait       O(1)              latencies remember     needs samples of its own
//	P2C, PeakEWMA              expected wait       O(1)¹             forgets what is rare   estimates that fade to zero make all look alike
//	Least, LeastTime           time, in flight     O(n)¹             forgets slowly         one client's averages; failing fast looks idle
//	Adaptive                   expected wait       O(1)              latencies remember     needs samples of its own
//	Hash                       the key, then load  O(1)²             agree on every key     popular keys: bounded, at a second cache
//
//	¹ takes a lock
//	² rendezvous: O(n)
//
// In words: a rule that goes by nothing or by weights treats every endpoint as its
// configuration says, whatever is happening, and does not mind how many clients
// there are. Requests in flight show who is busy, without any configuration; they are
// exact for one client that carries all the traffic, and mean less the more clients
// share it: with fifty of them most counts are 0 and the choice is nearly random.
// Latency carries what a client saw from one request to the next, so it still means
// something there. Only what endpoints report covers everybody's traffic: where
// answers carry it ([Load]), the rules by expected wait use it, against an endpoint and never for it. Looking
// at all endpoints and taking the best is safe with counts of one's own, and dangerous
// with anything that others see too or that is old: all go to the same place at once.
// A few random candidates give nearly all of the gain without that. Adaptive looks at all of up
// to twelve, and guards against it: those that are new, back or mended count as no faster
// than the median while they have requests in flight, and while most of the endpoints fail, failures
// count for little, so that whoever is back first does not get everything.
//
// Endpoints that ask to be left alone are, by all policies: those that go by the expected wait put
// them behind all others, rules that rotate or draw go on to the next, and a key goes to its
// next candidate, until the time asked for is over. If all ask, it is as if nobody had. Left out are the
// signals that do as another program does and learn other things, [LeastTime] and a Plain
// [PeakEWMA], and keys that a Hash remembers ([Hash].StickyKeys).
//
// Anything that counts failures as answers prefers whoever fails fast. Here a failure
// is never a latency sample, and the policies that go by the expected wait count it
// as a score of its own, by the part of requests that fails rather than by failures a second;
// policies by in-flight counts alone do not see it.
//
// # Weights
//
// A weight is relative capacity: absent is 1, and 0 is drained, a member without new
// requests. When all weights of a list are 0 they are taken for equal, and
// [Members.AllDrained] says so. Rules by weight follow them at any ratio, but rotations
// lose some of that when availability changes about as often as they are asked;
// comparing rules draw in proportion to weight and compare cost per weight.
// RoundRobin and Random ignore all weights but 0.
//
// # Cost
//
// Pick and Done allocate nothing, and take no lock but where the table says so. Two picks
// of different endpoints write no common cache line, except for the counter of rotating
// rules. Building Members and snapshots is O(n).
//
// # Time
//
// Instants are int64 nanoseconds since an origin that the caller chooses, the same
// for a whole Registry, not below 0. They must come from a monotonic clock.
//
// # Concurrency
//
// Registry needs its owner's lock. Everything else is immutable or safe for
// concurrent use.
package picker
