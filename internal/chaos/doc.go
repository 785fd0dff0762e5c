// Package chaos holds tests of real servers in trouble: what a client loses while some of ten are
// killed, stopped, hang or fail, and how soon all is well again.
//
// Servers are processes of their own, started from the test binary, each with a port for HTTP/1.1 and
// HTTP/2 and one for gRPC on loopback. They are told what to do through standard input, end with it, and are
// killed and stopped by signals. Clients send 120 requests a second each at random instants, with a
// deadline of a second and without retries, through httpclient.Transport over HTTP/1.1 and HTTP/2 and
// through a gRPC channel. All contenders, which are configs (main_test.go), and round robin as the
// reference meet a trouble at the same time on the same servers, so that no bar is reached because
// nothing happened: where it matters, the reference has to lose half of what goes to bad servers. The
// reference, and the policies that go by nothing or by requests in flight, guarded by ejection and the limit of
// a default Config, send half as much: they need no more to show what they do.
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
// Success in % during three seconds (four in some), of several runs on a busy machine with two cores, and the
// largest share of a bad server from the first second on. The first column is of HTTP/1.1 and HTTP/2, between
// which there is no difference. Success was 99 % again at once but where it says so below.
//
//	trouble, of ten servers     default          round robin, guarded  p2c in flight, guarded  round robin
//	                            HTTP     gRPC    HTTP     gRPC         HTTP     gRPC           HTTP  bad share %, of the four
//	one killed at work          99-100   100     96-98    100          96-98    99-100         90    0.5  1.6   3.8  10
//	three killed                97-99    99-100  89-93    99-100       89-93    99-100         70    0.4  1.6   2.2  10
//	one stopped                 100      100     88-95    92-96        98-99    98             93    0     10   2.7  10
//	three stopped               99       99      80-86    78-84        81-93    86-90          79    0.3  5.8   3.2  10
//	one refuses connections     99-100   100     96-98    100          96-98    100            90    0.5  1.6   2.1  10
//	one accepts, says nothing   100      100     93-97    100          98-99    100            90    0    5.7   2.5  10
//	one hangs                   100      100     88-96    89-98        98-99    98-99          90    0     13   2.3  10
//	one resets half-way         98-99    99-100  96-98    94-98        96-98    92-98          90    1.4  5.0   5.0  12
//	one ten times slower        100      100     100      100          100      100            100   0.9   10   5.6  10
//	three ten times slower      100      100     100      100          100      100            100   1.3   11   6.4  10
//	one fails in 1 ms           99-100   99-100  96-98    95-97        96-98    96-98          90    0.5  2.0   2.4  10
//	three fail in 1 ms          97-99    97-98   89-93    87-92        89-93    89-93          70    0.7  1.9   2.4  11
//	the same, checks pass       98       97      92-94    93           92-94    92             70    0.3  1.6   1.5  10
//	one full (429, pushback)    99-100   99-100  90       90           85-89    87-90          90    1.4   10    17  10
//	three full                  97-98    97-98   70       70           61-70    61-66          70    1.0   11    16  10
//	restarted, one by one       95-98    100     93-95    100          91-96    100            91
//	restarted, list first       100      100     100      100          100      100            100
//	list changes, 20 times a s  100      100     100      100          100      100            100
//	three leave it and return,
//	every 200 ms                100      100     100      100          100      100            100
//
// When all ten are full, all is refused, and all is well again at once when that is over. With thirty long
// answers under way besides, those on a server that is killed go on elsewhere within 0.1 s, those on one that
// is stopped within 1 to 3 s, of which one is the client's patience, and no other breaks.
//
// One to four requests are lost to each bad server by the default, and seven by ejection after five failures.
// Over gRPC, which asks nobody without a connection, round robin is as good where connections break.
//
// The bad deploy is another test: three of ten servers fail in 1 ms for twelve seconds, each does
// one request at a time at each port, and load is 80 % of what all can do, so that 87.5 % can succeed (a little
// more at first, as queues fill; less, as the servers measure, where the machine makes work take longer: 82
// to 87 %). The bar is 95 % of what is possible.
//
//	success %, then seconds until 99 %   1 client             20 clients           100 clients
//	default, HTTP                        85 to 88, 0 to 3     85 to 88, 2 to 7     87 to 89, 1 to 3
//	default, gRPC                        82 to 88, 1 to 5     82 to 86, 2 to 7     84 to 87, 3 to 6
//	round robin, guarded                 82 to 88, 3 to 7     83 to 88, 4 to 9     81 to 82, 0
//	p2c in flight, guarded               84 to 88, 2 to 5     82 to 87, 0 to 9     77 to 80, 0
//	round robin                          70, 0
//
// Each of 20 guarded clients sends one request a second to a server, so that five failures take 4 s, and each of
// 100, 22 s; what they lose before most of them know (half as long again) does not count, and
// the trouble lasts eight seconds longer than that. Of 100 they are to have 85 % of what is possible, since not all know.
//
// Nothing is limited without distress: 1,000 streams over gRPC or 500 downloads over HTTP, and
// 500 requests at once besides, are all at the servers at the same time.
//
// Not held yet:
//
//   - A server that hung, stopped or was slow is asked again by the default when others cannot do the work, or
//     when what was seen has faded, which is slow: the time constant is a minute. There is no bar, nor for
//     three that fail.
//   - Equal servers do not get equal shares: in two seconds of no trouble, the least used of ten
//     had 0 to 6 % of the requests. Nothing failed and nothing was slower for it.
//   - Under policies that need no times, the limit begins at what is in flight when a server hangs, which is mostly what
//     hangs there, and refuses, or sends to the server that is ejected for it, up to a fifth of the
//     requests for a second, and a few for 5 s after: more than a blind client loses.
//   - Guarded clients have 99 % again up to 10 s after the bad deploy, where 5 are the goal: servers come back on a
//     ramp of ten seconds, and what is beyond the limit is refused meanwhile. Twenty clients of the default need
//     up to 7 s when the machine is busy. The bar of all these is 10.
//   - Policies that do not go by the expected wait do not know that a server asks to be left alone.
//
// # Restarts
//
// What users lose when one of two servers is deployed anew is another test: they send one request after the other
// from 16 workers, with httpclient's retries, by GET and by POST, over HTTP/1.1 and over HTTP/2 with and without TLS.
// Servers get SIGTERM, on which they take leave of their clients as net/http does, or SIGKILL. Lost requests in four
// restarts, of 3,000 to 20,000:
//
//	                                    HTTP/1.1          HTTP/2
//	                                    GET   POST        GET   POST
//	SIGTERM, nobody is told             0     10 to 40    0     0
//	SIGTERM, list at that instant       0     0 to 20     0     0
//	SIGTERM, list 200 ms before         0     0           0     0
//	SIGTERM, Drain 200 ms before        0     0           0     0
//	SIGTERM, checks fail before         0     0           0     0
//	SIGTERM, and 2 ms of keep-alive     0     a quarter   0     0
//	SIGKILL, nobody is told             0     20 to 55    0     20 to 55
//	SIGKILL, list 200 ms before         0     0           0     0
//
// All zeros are bars. What is lost is at most what is under way, 16 at a time; a server may have acted on each of them, as far as
// can be known; and none is acted on twice. Servers keep a ledger for that, which outlasts them. With 2 ms of keep-alive
// users pause for as long, so that connections end just as they are used. Answers of servers that are killed are headers
// alone: one that has begun cannot be had again. Where nobody is told, round robin without retries takes part,
// and has to lose something.
//
// The default, which goes by waits, may be seconds late to come back to a server whose connections it has seen refused,
// while another one can do the work. That is printed, and no bar.
//
// # Noise
//
// Servers to which nothing happens are asked without any balancing, each in turn. Requests that were
// under way while such an answer took 100 ms too long count nowhere. If that are more than 5 % of those
// before and during the trouble, or more than 0.5 % of all and a bar is not reached, the try is repeated: the
// machine stood still. After three tries nothing is known, which is printed, and fails when it is so of three
// quarters of the troubles.
//
// # Running
//
//	EVENKEEL_LONG=1 go test -v -run Long ./internal/chaos
//
// prints the tables and takes five minutes. One trouble of a small fleet, and one restart of each kind, are part of every
// test run. The tests need signals, and so a Unix.
package chaos
