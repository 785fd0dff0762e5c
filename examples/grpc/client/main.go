// Command client shows how a gRPC client uses the policy, and what it can tell about itself. Start the server in
// one terminal and the client in another:
//
//	go run ./examples/grpc/server
//	go run ./examples/grpc/client
//
// The server's replicas are behind one name, as those of a headless service in Kubernetes are, with an address each.
// The client resolves it by DNS, connects to all of them, and makes 200 calls a second. Each second it prints what the policy
// knows of each replica: the connection, calls in flight, calls so far, the latency that it expects, and why it gets
// fewer calls than others, if it does. In between it prints what happens.
//
// Two things are worth a look. The replicas are not equally fast, and get calls accordingly. And gRPC asks DNS again only when
// a connection ends: the server lets connections live for ten seconds (keepalive.ServerParameters, MaxConnectionAge), so
// that the client learns of the replica that comes later. No call fails over that.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver/dns"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/examples/grpc/deployment"
	"github.com/evenkeel/evenkeel/grpcbalancer"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// settings is what the flags say.
type settings struct {
	target  string
	every   time.Duration // between two calls
	show    time.Duration // between two tables
	resolve time.Duration // between two questions to DNS, at least
}

// run is main with everything that it takes from the process passed in. It returns the exit status: 2 for wrong
// flags, 1 for anything else that fails.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var s settings
	f := flag.NewFlagSet("client", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&s.target, "target", "dns://127.0.0.1:5353/"+deployment.Name+":50051", "as the server prints it")
	f.DurationVar(&s.every, "every", 5*time.Millisecond, "between two calls")
	f.DurationVar(&s.show, "show", time.Second, "between two tables")
	f.DurationVar(&s.resolve, "resolve", time.Second, "between two questions to DNS at least; gRPC's default is 30s")
	span := f.Duration("for", time.Minute, "how long all of it lasts")
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case s.every <= 0 || s.show <= 0 || *span <= 0:
		fmt.Fprintln(stderr, "client: -every, -show and -for have to be above 0")
		return 2
	}
	ctx, cancel := context.WithTimeout(ctx, *span)
	defer cancel()
	if err := s.serve(ctx, stdout); err != nil {
		fmt.Fprintf(stderr, "client: %v\n", err)
		return 1
	}
	return 0
}

// connect is all that it takes to use the policy.
func (s settings) connect() (*grpc.ClientConn, error) {
	// The defaults are for production. JSON does as well: {"loadBalancingConfig": [{"evenkeel": {}}]}
	config, err := grpcbalancer.ServiceConfig(evenkeel.Config{})
	if err != nil {
		return nil, err
	}
	return grpc.NewClient(s.target,
		grpc.WithDefaultServiceConfig(config),
		grpc.WithChainUnaryInterceptor(grpcbalancer.UnaryInterceptor),
		grpc.WithChainStreamInterceptor(grpcbalancer.StreamInterceptor),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// serve calls and shows until the context is done. It returns an error if a call failed.
func (s settings) serve(ctx context.Context, stdout io.Writer) (err error) {
	dns.SetMinResolutionInterval(s.resolve)
	out := &lines{to: stdout}
	defer grpcbalancer.Observe(func(e grpcbalancer.Event) { out.printf("  * %v\n", e) })()
	cc, err := s.connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cc.Close()) }()
	var made, failed atomic.Int64
	var open sync.WaitGroup
	defer func() {
		open.Wait()
		out.printf("%d calls, %d failed\n", made.Load(), failed.Load())
		if n := failed.Load(); n > 0 {
			err = fmt.Errorf("%d calls failed", n)
		}
	}()
	call, show := time.NewTicker(s.every), time.NewTicker(s.show)
	defer call.Stop()
	defer show.Stop()
	for {
		select {
		case <-call.C:
			open.Go(func() {
				made.Add(1)
				// A call that has begun may end, though the client is about to.
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
				defer cancel()
				if err := cc.Invoke(ctx, deployment.Method, new(emptypb.Empty), new(emptypb.Empty)); err != nil {
					failed.Add(1)
					out.printf("  ! %v\n", err)
				}
			})
		case <-show.C:
			out.printf("%s", table(grpcbalancer.Stats()))
		case <-ctx.Done():
			return nil
		}
	}
}
