// Package evenkeel balances requests over the endpoints of a service, on the client's
// side: every caller decides per request which endpoint gets it, from its own
// requests in flight, the latencies it measured and the failures it saw.
//
// Most programs do not use this package directly: they import grpcbalancer, which
// registers the gRPC policy "evenkeel", or put an httpclient.Transport into their
// http.Client. Use [Pool] here when you have a transport of your own.
//
// A Pool holds the endpoints, each with a handle of your type (a connection, a
// client). [Pool.Update] and [Pool.SetState] say who is there and who is ready;
// [Pool.Pick] chooses one; [Pick.Done] says how the request went, and that is how the
// pool learns. What it learnt about an ID stays through updates, reconnections
// and changes of policy.
//
//	pool, err := evenkeel.NewPool[*Conn](evenkeel.Config{}, evenkeel.Options{})
//	...
//	err = pool.Update([]evenkeel.Member[*Conn]{{Endpoint: evenkeel.Endpoint{ID: addr}, Handle: conn}})
//	...
//	pick, err := pool.Pick(evenkeel.Request{})
//	if err != nil {
//		return err // nobody there, or too many in flight: at once, never a wait
//	}
//	reply, err := pick.Handle().Call(ctx, req)
//	pick.Done(evenkeel.Result{Outcome: outcomeOf(err)})
//
// Policies that hash send equal keys to the same endpoint. The adapters find a request's key
// by [Config].Keys; a Pool is told: Request{Key: hash.Sum(key), HasKey: true}.
//
// With [Config].Subset the pool has a part of a large fleet for its members, chosen by package
// subset. [Pool.Selected] says which, to whoever keeps connections; connect to these alone, and
// look again after each Update, SetConfig and Sweep whether [Pool.Generation] has changed.
//
// Whatever the policy, a Pool keeps a bad day from becoming an outage. While deadlines are missed
// it limits what this client has in flight ([LimitConfig]); pass deadlines to [Pick.SetDeadline]. For
// policies that do not see failures it ejects endpoints that fail, tries them with single
// requests, and brings them back by and by ([Config].Outlier). With [Config].Health the
// adapters check endpoints beside their requests; a Pool makes no checks, and [Pool.SetStates] takes what they say.
// With [Config].SlowStart endpoints that join or come back take up their share slowly.
// Beside that, [Pool.Drain] keeps new requests off an endpoint. [Stats] shows who gets nothing, and why.
//
// Several users of one service in a program, each with connections of its own, balance as one with
// [Pool.Branch].
//
// Pick and Done take no lock, allocate nothing, and cost the same for ten endpoints
// and for ten thousand. The package starts no goroutine and no timer: call
// [Pool.Sweep] about once a second (a pick does it if nobody did).
//
// It has no part in connecting, sending, retrying or resolving names; that is the
// adapters' work or yours.
package evenkeel
