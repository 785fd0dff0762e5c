// Package sim is a discrete-event simulator of fleets under client-side load balancing. It
// runs in virtual time and drives the library's own pools and pickers, as an adapter
// drives them: what it measures is the code that users run.
//
// A [Scenario] says what servers there are, what traffic comes and what happens; a
// [Policy] how requests find their servers; [Run] gives the [Result] for a seed,
// [RunSeeds] those for several and [Over] their mean and deviation. [Cases] are named
// scenarios with the figures read off them, [PolicyNamed] finds policies by name.
//
// # Model
//
// Requests arrive, go through one of the balancers, which picks a server, travel,
// wait or share, are worked on, and travel back. Servers work in order with any
// number of workers, or share them; what happens to them has a timetable: slow, cold,
// failing fast or in part, hanging, drained, gone, back. Clients that time out leave
// their work behind. Arrivals and work are drawn independently of the policy, so policies
// are compared on the same requests. Not modelled: connections, retries, and what
// one request costs another beyond waiting.
//
// # Bounds
//
// Besides real policies there are omniscient ones ([ShortestQueue], [ShortestDelay]), one that
// knows all queues as they were some time ago ([Seen]), and tables of true loads of a given age that all balancers share. In a closed loop an omniscient
// policy bounds nothing: there requests come when others are answered, so that policies meet
// different traffic.
//
// # Determinism
//
// The same scenario, policy and seed give the same Result, to the last bit, however many
// runs go on at once. The simulator itself computes the same on every machine, but for
// lognormal work; that and the library's estimators may differ in a last bit between
// architectures.
//
// # Cost
//
// About 0.3 µs of CPU per request with ten servers, a third to a half of it in pool and
// picker, and no allocation (BenchmarkPicks); results take about 100 kB, each step of a time series 10 kB. A balancer
// takes what its pool does, 0.4 kB per server.
//
// # Tests
//
// The tests compare with queueing theory, with published simulations and with other
// simulators. Those of many minutes run with EVENKEEL_LONG=1 in the environment:
//
//	EVENKEEL_LONG=1 go test -run Long -timeout 60m ./internal/sim
//
// A table of any policies in any cases comes from
//
//	go test ./internal/sim -run TestTable -v -args -policy 'default p2c' -cases S1,fleet_a
//
// and a line for each cell of the grid of bad deploys, in half an hour of CPU, from
//
//	EVENKEEL_GRID=grid.tsv go test ./internal/sim -run TestGridOfBadDeploys -timeout 60m
//
// What the default policy has to reach is in bars_test.go and robust_test.go, what ejection may cost in
// deploybar_test.go; docs/default.md and docs/bad-deploy.md have the figures.
package sim
