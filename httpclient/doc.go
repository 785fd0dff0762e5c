// Package httpclient is an http.RoundTripper that balances: it chooses, for each
// request, one of the endpoints behind the URL's host by what this client knows of
// them (its own requests in flight, the latencies it measured, the errors it saw).
//
//	tr := &httpclient.Transport{}
//	defer tr.Close()
//	client := &http.Client{Transport: tr}
//	resp, err := client.Get("http://orders.internal:8080/v1/orders")
//
// Use it where a client talks to several instances of a service without a proxy
// between. net/http alone keeps using the connections that it has: with HTTP/2 that is
// one, and with a busy HTTP/1.1 client the addresses of the day it started. Don't use
// it for hosts on the internet at large: behind those is a balancer already.
//
// Each endpoint has an http.Transport of its own whose dialer goes to that endpoint
// whatever the URL says. The request is never rewritten, so that the Host
// header, TLS server name, certificates, cookies, redirects, Response.Request and
// Response.Location are those of the URL.
//
// # Where addresses come from
//
// Transport.Resolver finds the endpoints of each target, and goes on doing so:
//
//	nil, or &DNS{}              the A and AAAA records of the URL's host, again every 30 s
//	&SRV{}                      SRV records, with ports, priorities and weights
//	Static{{Addr: "10.0.0.1"}}  a fixed list
//	&File{Path: "backends"}     a file, whenever it changes
//	&Poll{Func: f}              a function, called every 30 s
//	Merge{a, b}                 all that several resolvers find
//	&MinBackends{N: 8}          several endpoints, and connections, for each address
//
// Package grpcresolver adapts those that exist for gRPC, and a [Resolver] of your own has one method.
// All but Static ask earlier when connections fail, except File, which looks every 5 s. Their order of addresses says
// nothing. One that fails leaves the last list in force, an empty list empties the target, and
// Snapshot shows the last error. A list has at most 131,072 addresses.
//
// A Transport fits httputil.ReverseProxy too, see examples/http.
//
// # In flight
//
// A request counts as in flight from the choice until its answer's body is at its end
// or closed: close bodies, as net/http asks anyway. An answer without a body counts
// no further than its headers, and the connection of a 101 answer until it is closed.
// Whether the endpoint did well is learnt from the headers; a body that breaks off
// afterwards is a failure.
//
// A request whose answer comes early, while its own body is still being sent, counts until both have ended. Bodies
// that http.NewRequest makes of bytes are not watched: those count as sent.
//
// An endpoint that has ended no request for ten minutes, and holds no stream, is no
// longer believed to be busy: what it has in flight is taken for bodies that nobody will
// close. So an endpoint that serves nothing but longer downloads seems idle after
// that. Streams are requests with an Upgrade header or "Accept: text/event-stream", and those of the method CONNECT.
// Snapshot shows how many such bodies there are, as Leaked. With Transport.HealLeaks the garbage collector closes bodies that
// callers drop, for programs that cannot be mended today.
//
// # Affinity
//
// Under a policy that uses keys, requests with equal keys go to the same endpoint, from all
// clients that have the same list in whatever order, while it is there. A request's key is
// what Transport.Key returns, or the first of Config.Keys that it has: a header, a cookie
// (of the client's Jar too), a parameter of the query, the path, or the key that
// evenkeel.WithKey gave its context, which is also where it is looked for if Keys is nil.
//
//	tr := &httpclient.Transport{Config: evenkeel.Config{
//		Policy: picker.Hash{},
//		Keys:   []evenkeel.Key{{Cookie: "session"}, {Header: "X-User"}},
//	}}
//
// What http.Transport itself adds to a request is not there yet. Names of headers are
// found in the form that http.Header.Set gives them.
//
// [picker.Hash] does not look at failures: an address that fails or cannot be reached is ejected
// after five in a row, and its keys go on to their next candidates until it is back.
//
// # Load reports
//
// Answers may say how busy their server is (ORCA), in the header endpoint-load-metrics or in a trailer of that name, which
// is there once the body has been read to its end. The default policy, and all that go by the expected wait, use what
// they say by itself; with Config.Reports weights follow them:
//
//	tr := &httpclient.Transport{Config: evenkeel.Config{
//		Policy:  picker.WeightedRoundRobin{},
//		Reports: &evenkeel.ReportsConfig{Weights: evenkeel.ReportedWeights},
//	}}
//
// Package orcahttp has the middleware for servers. A report that cannot be read is counted, and nothing else.
//
// # Subsets
//
// With Config.Subset a Transport uses, for each target, a part of its addresses, as package
// subset says, and connects to no other:
//
//	tr := &httpclient.Transport{Config: evenkeel.Config{
//		Subset: &subset.Config{Size: 20, ClientIndex: subset.IndexFromHost()},
//	}}
//
// The part changes with the addresses, with the load if the configuration says so, and with no
// weight, except of the algorithm Aperture. Drained addresses do not count as available: while too
// few are, others are used too. One that does not answer does count. Who leaves the part ends its
// requests, and then its connections close. Snapshot shows how many addresses there are, and warnings.
//
// # Bad days
//
// While requests miss their deadlines (those of their contexts, which the Timeout of an
// http.Client is one of), a Transport limits what it has in flight for each target, so that
// waiting requests do not take down what still works. One more fails at once with an error
// that is an evenkeel.ErrOverloaded, and an [ErrUnreached]; no endpoint is blamed. Streams and upgrades do
// not count. Endpoints that fail are avoided by the default policy, and ejected for a while under
// those that do not look at failures. Config.Limit and Config.Outlier change both; Snapshot
// shows who is ejected, and why.
//
// # Addresses that leave and come
//
// An address that leaves the list, loses its place in the subset, has weight 0 or is drained by [Transport.Drain] gets
// nothing new. Its requests go on, and when the last has ended its connections close. Config.DrainTimeout ends them
// sooner: then they fail with an [ErrDrained], which is no failure of the endpoint's. If the address is back in the
// meantime, it has its connections and all that is known of it. A Transport that is closed waits for nobody, and
// cuts nobody off.
//
// With [Transport].MaxConnAge connections do not grow old: an endpoint gets new ones, which are ready before the old ones are left, and
// no request fails for it, but those that Config.DrainTimeout ends. A name that stands for many machines (a virtual IP, a
// balancer of connections) then has those found that are added to it; with HTTP/2 [MinBackends] beside it, for more than one at a time:
//
//	tr := &httpclient.Transport{
//		Resolver:   &httpclient.MinBackends{N: 8},
//		MaxConnAge: 10 * time.Minute,
//	}
//
// With Config.SlowStart whoever joins or comes back takes up its share slowly, with any policy; Snapshot shows the shares.
//
// # Health checks
//
// With Config.Health the addresses in use are checked, over connections of their own that are made as
// those of requests are, with Base's DialContext and TLSClientConfig:
//
//	tr := &httpclient.Transport{Config: evenkeel.Config{
//		Health: &evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTP, Path: "/healthz"},
//	}}
//
// Targets of https want CheckHTTPS. Whoever fails its checks gets no requests, as long as enough others pass theirs. An address that joins others
// waits for its first check; while nobody has passed one yet, all are used. Checks are made once in a minute for a target without
// requests, and end with the address, the target, or the Transport. Snapshot shows what they came to.
//
// # Retries
//
// A request of which nothing was sent (the connection was refused, or came to nothing), or that was refused unread, is
// sent to another endpoint at once, whatever its method. One whose connection broke later is sent to another if it
// is idempotent, after some milliseconds. There are three tries at most. [RetryConfig] says more, and more is possible:
//
//	tr := &httpclient.Transport{Retry: &httpclient.RetryConfig{
//		Statuses:   []int{502, 503, 504}, // of idempotent requests
//		TryTimeout: time.Second,          // to the headers, within the request's own deadline
//	}}
//
// Retries have a budget for each target, 20 % of its requests and ten a second. When that is spent, or no time is left for a try
// as long as the target's answers usually take, or no body can be had from http.Request.GetBody, the last answer or error is
// what the caller gets. Retry-After is waited for, up to a bound and never beyond the deadline. An answer whose headers
// the caller has seen is never retried.
//
// Beside all this http.Transport sends a request again by itself, to the same endpoint, if a connection that it had kept turns
// out to be closed before the answer, or HTTP/2 says that a stream was refused or came after a GOAWAY. Nobody is told: it
// is one try, in flight all the time. Of a stream that is refused again and again net/http makes eight tries within about a minute,
// waiting in between; where servers do that, a TryTimeout takes the request elsewhere before. Connections that end one after the
// other without an answer, as behind a server that says GOAWAY at once, are made eight times for a try, and not for ever.
//
// An error after the last try is an [AttemptError], which says where it happened, whether the endpoint may have acted
// on the request, and how the tries before went.
//
// # Hedges
//
// With Transport.Hedge an idempotent request whose answer is late is sent to a second endpoint as well, and the first good answer
// counts; see [HedgeConfig]. This helps where single answers are slow for reasons of their own endpoint, and makes
// things worse where all are; so it is off unless asked for, and stops while the target is in trouble.
//
// # One request
//
// What a request's context says goes before what the Transport says: [WithEndpoint] and [WithAvoid] steer it
// (an endpoint that is named gets the request though it is ejected or fails its checks),
// [WithRetry], [WithoutRetry] and [WithIdempotent] say how often it may be sent, evenkeel.WithKey gives it a key, and [WithTrace]
// tells what becomes of it, try by try:
//
//	ctx = httpclient.WithTrace(ctx, &httpclient.Trace{GotEndpoint: func(e httpclient.Event) { log.Print(e.Endpoint) }})
//
// An [Observer] is told of the tries of all requests, for metrics.
//
// # Hosts that are not balanced
//
// Transport.Balance says which URLs are balanced; the others are passed on as they are.
//
// # Beginning and end
//
// [Transport.WaitReady] waits until a target has endpoints, one of which has passed its check if there are checks, before the
// first request needs one. [Transport.Shutdown] refuses new
// requests and waits for the others, [Transport.Close] does not wait.
//
// # Cost
//
// One allocation for an answer with a body, none for one without, beside those of
// http.Transport, and O(1) work. A request with a body that is not in memory costs one
// more, and another if it has a GetBody. That a request may be sent again costs nothing until it is; a TryTimeout costs
// a context and a timer, and a hedged request a copy of itself and a goroutine for each try. Each Transport has one goroutine, and each
// target one for its resolver, one for its health checks, and one for each of up to 64 that are being made. Everything is safe for concurrent use.
package httpclient
