// Command fleetsim answers what a load-balancing policy would do for a fleet. It lets
// the same requests arrive in virtual time for each policy, through the library's own
// pools and pickers, and compares latencies, errors and where the requests went:
//
//	go run ./cmd/fleetsim -preset slow-backend -html out.html
//	go run ./cmd/fleetsim -endpoints 20 -utilisation 0.8 -clients 200 -fail 20s-40s
//
// The table goes to the terminal; -html writes a page with charts beside it. -h explains
// the flags, -preset list names fleets that are ready to run.
//
// The same flags give the same bytes. Flags that make no sense end with status 2 and
// a line for each problem.
package main
