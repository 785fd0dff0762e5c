// Package subset chooses which part of a fleet a client connects to. Where every client
// connects to every endpoint, connections and health checks grow with the product of
// both; with subsets, each client has about Size of them.
//
// A [Selector] does it for a list that changes, as a pool needs it. Beneath it are pure
// functions from who the client is, a list and a size to indices in ascending order; they
// keep and change none of their arguments, and any number of goroutines may call them. The
// same client gets the same subset for the same list on every machine, whatever order the list
// has. An endpoint is its ID and nothing else: no attribute moves a connection, and a weight only where
// [Rendezvous] and [Aperture] are called with weights.
//
// # Which one
//
// 300 clients, 300 endpoints, about ten for each (go run ./cmd/fleetsim -preset subsets -seeds 5;
// other numbers with -clients, -endpoints and -size). "Load" is that of the busiest endpoint to
// the mean, for equal clients. "Opened" counts the connections that are opened when one
// endpoint is removed or added, 1 being the ten that have to be if all subsets keep their
// size. "Restart" replaces all endpoints in ten batches, "growth" adds half as many:
//
//	                       clients of          |     opened by     |
//	                       an endpoint  load   | removal  addition | restart  growth   needs
//	Rendezvous                   2..23  2.20   |    0.97      1.13 |    1.00    0.98   nothing
//	Deal                         9..10  1.29   |    0.55      1.37 |    0.73    1.73   client's index
//	Deal and LoadWeights         9..10  1.00   |    0.55      1.37 |    0.73    1.73   index, number of clients
//	Rocksteadier, ordinals      10..10  1.00   |    1.00      0.90 |    1.00    0.92   index, endpoints' indices
//	Rocksteadier, by name       10..10  1.00   |     154       147 |    9.67    55.1   index
//	Aperture                    10..10  1.00   |    59.8      30.9 |    2.65    5.58   index, number of clients
//	Deterministic               10..10  1.00   |     282       182 |    9.70    58.5   index
//
// A client that comes or goes moves nothing at others, but with Aperture, where 589
// connections are opened elsewhere.
//
//   - No index: [Rendezvous], which is the default then. Many clients or a large size make it more
//     even: 5,000 clients of 200 endpoints with 20 each give a load of 1.1.
//   - An index, from a StatefulSet, an indexed Job or an allocator: [Deal], the default then, and
//     the number of clients too if it changes seldom.
//   - Endpoints that also have an index each which stays with them: [Rocksteadier]. A pool has no
//     place for such an index.
//   - A list that never changes: [Deterministic].
//   - Rings like those of Finagle beside you: [Aperture].
//   - Up to some tens of endpoints: none. Choosing among twelve or more leaves something to
//     choose from.
//
// # What Deal promises
//
// All endpoints have the same number of clients, give or take the last, incomplete lot of
// clients. Subsets differ in size: a lot is a power of two of clients, so that a mean subset is
// 0.71 to 1.41 times the size where it is chosen, and 0.6 to 1.5 times while it is held;
// around the mean, sizes are within [Lot.Band], here 2 to 19, and 3 to 17 in twenty seeds.
//
// Over 20 seeds (EVENKEEL_LONG=1 go test -v -run Deal ./subset, also for what follows), at 300 × 300 with a size of 10, 1,000 × 1,000 with 20 and 5,000 × 200 with 20:
// clients of an endpoint, most to mean, 1.07, 1.03 and 1.00; load 1.29, 1.18 and 1.01; a removal
// opens 0.64, 0.50 and 0.69 times the least, and an addition 1.56, 1.32 and 1.94; a rolling restart 0.73,
// 0.56 and 0.84 of twice all connections. Growth from 260 to 560 endpoints, one by one, opens 1.83
// times the least. Going up and down by a tenth around a doubling opens 0.1 of twice all connections
// each time, as the lot is held. At the ends of what is held, where a mean subset is 0.6 and 1.5
// times the size, an addition opens 0.97 and 2.5 times the least, and the load is 1.39 and 1.25.
//
// Where it is weak, in the same order of fleets:
//
//   - Gaps in the indices: with 5, 10 and 20 % missing at random, most to mean is 1.07, 1.17
//     and 1.28; 1.09, 1.15 and 1.28; 1.02, 1.03 and 1.05. Indices that everybody draws at
//     random are no better than Rendezvous: 2.06 and 1.88.
//   - Fewer clients than a lot: 20 clients in lots of 32 leave 114 of 300 endpoints without a
//     client (Rendezvous 153), and eight leave 226 (229).
//   - A third of the endpoints dead: of 300 clients, one can have none alive. A [Selector] adds
//     endpoints until half of the size is available (99 connections beside 2,813; 811 beside 15,625;
//     25 beside 125,000), and the load of those alive is 1.4 to 1.5; 1.32; 1.02.
//   - Half of the clients not knowing of one removal yet: most to mean 1.18, 1.09 and 1.01 at
//     the worst seed; of a tenth removed, 1.28, 1.22 and 1.01.
//   - Half of the clients holding a lot of twice the size: 1.49, 1.40 and 1.05, until they agree.
//     Clients that start between two doublings hold what rounding says, and Config.LotSize fixes it.
//   - Two clients with one index have one subset: load is uneven by what they send.
//
// # Cost
//
// Linear or n log n in the endpoints, per update and client, and nothing per request: about
// 0.1 ms for Deal with 1,000 endpoints, 2 ms with 10,000; with [LoadWeights] for 1,000 clients 1.2
// and 7 ms (go test -bench Update ./subset).
//
// Sources: the SRE book's chapter on load balancing in the datacenter for Deterministic; Ward,
// Wankadia and Guliani, ACM Queue 20(5), 2022, for Rocksteadier; Finagle for Aperture;
// gRPC's proposal A68 is Rendezvous with a random seed.
package subset
