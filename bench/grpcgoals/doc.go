// Command grpcgoals measures the gRPC policy beside gRPC's own, in one process and one run:
//
//	cd bench && go run ./grpcgoals            what fits into a few minutes
//	cd bench && go run ./grpcgoals -full      with round_robin's start of 10,000 endpoints, half a minute of CPU
//
// What is compared is CPU time (getrusage, the whole process), allocations and counts; wall time is noise on a
// machine that others use. The parts are pick (a pick and its end), rpc (unary calls over loopback, 8 servers,
// 16 callers), start (endpoints that come up on a channel that is faked), change (one connection of many) and real (a real
// channel with a server in another process).
package main
