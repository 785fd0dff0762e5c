// Package chaos holds tests of real servers in trouble: what a client loses while one of ten is
// killed, stopped, hangs or fails, and how soon all is well again.
//
// Servers are processes of their own, started from the test binary, each with a port for HTTP/1.1
// and one for gRPC on loopback. They are told what to do through standard input, end with it, and are
// killed and stopped by signals. Clients send 120 requests a second each at random instants, with a
// deadline of a second and without retries, through httpclient.Transport and through a gRPC
// channel. All contenders, which are configs (main_test.go), and round robin as the reference meet a
// trouble at the same time on the same servers, so that no bar is reached because nothing happened: where
// it matters, the reference has to lose half of what goes to bad servers.
//
// A request takes 20 to 50 ms, and ten times that on a server that is slow. So four are in
// flight. With less than one in flight, the default sends nearly all to the few servers
// that look a little faster, and there is no trouble in most of the troubles.
//
// # Bars
//
// Each trouble has, for each adapter, a largest number of lost requests, from what no client without
// retries can help losing: what the server had in flight, and what it takes to find out. It has
// a largest share of a bad server from a second on, a time until success is 99 % again, in each second
// from then on, and where that can be waited for a time until the server has half as many
// requests as the least used of the others. Before that comes its first good answer.
//
// # What holds today
//
// Success during three seconds, of several runs on a busy machine with two cores; "asked" is the time
// from the end of the trouble to the first good answer. Success was 99 % again at once in all.
//
//	trouble, of ten servers      HTTP %        gRPC %       round robin %  bad share %  asked s
//	one killed                   99.1 to 99.7  99.7 to 100  90, gRPC 100   0 to 0.5     1 to 10
//	three killed                 97.2 to 98.5  99.5 to 99.7 70, gRPC 99    0 to 0.5     2 to 12
//	one stopped                  99.7          99.7         93             0            5 to > 27
//	three stopped                99.1          99.1         79             0            9 to 12
//	one refuses connections      98.7 to 99.4  99.7 to 100  90, gRPC 100   0 to 0.5     2 to 13
//	one accepts, says nothing    99.7          99.7 to 100  90, gRPC 100   0 to 0.5     1 to 17
//	one hangs                    99.7          99.7         90             0            8 to 10
//	one resets half-way          98.8 to 99.7  99.1 to 99.5 90             0 to 1       1 to 9
//	one ten times slower         100, 38 ms    100, 39 ms   100, 65 ms     0.4 to 1     0 to 3
//	three ten times slower       100, 48 ms    100, 47 ms   100, 128 ms    0.8 to 1.5   3 to 9
//	one fails in 1 ms            98.8 to 99.7  99.2 to 99.7 90             0 to 0.5     1 to 14
//	three fail in 1 ms           97.2 to 98.1  97.1 to 97.6 70             0 to 0.5     1 to 18
//	one full (429, pushback)     99.1 to 99.4  99.1 to 99.7 90             0 to 1       0 to 1
//	list changes 20 times a s    100           100          100
//
// That is one to four lost requests for each bad server, of 36 that round robin sends there. Over gRPC,
// which asks nobody without a connection, round robin is as good where connections break.
//
// The bad deploy is another test: three of ten servers fail in 1 ms for fifteen seconds, each does
// one request at a time, and load is 80 % of what all can do, so that 87.5 % can succeed (a little
// more at first, as queues fill).
//
//	success %                 1 client    20 clients
//	default                   58 to 70    81 to 82
//	default, 10 s of it       55 to 89    70 to 92
//	default, 30 s, one run    45 to 56    75 to 76
//	round robin               70
//	with limits, the goal     83          83
//
// For seven seconds the default loses next to nothing but what nobody can do. Then queues have grown to
// the deadline, requests time out at the servers that are well, which makes these look worse
// than those that fail at once, and up to all of one client's requests go to the latter, then half to
// three quarters for 15 s and longer; round robin sends 30 % there. It ends with the trouble, at once. A
// limit of requests in flight keeps queues from growing that far; until there is one the bar is
// 40, and 99 % again within 15 s of the end.
//
// Not held yet:
//
//   - A server that hung, stopped or was slow is asked again when others cannot do the work, or
//     when what was seen has faded, which is slow: the time constant is a minute. There is no bar.
//   - Equal servers do not get equal shares: in two seconds of no trouble, the least used of ten
//     had 0 to 6 % of the requests. Nothing failed and nothing was slower for it.
//
// # Noise
//
// One more server, to which nothing happens, is asked without any balancing. Requests that were
// under way while its answers took 100 ms too long count nowhere, and if that are more than 5 % of its
// own, the try is repeated: the machine stood still.
//
// # Running
//
//	EVENKEEL_LONG=1 go test -v -run Long ./internal/chaos
//
// prints the tables and takes three minutes. One trouble of a small fleet is part of every
// test run. The tests need signals, and so a Unix.
package chaos
