package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
)

// serveArg makes this program the server of a channel under test, so that its CPU time is not the channel's.
const serveArg = "serve-until-stdin-ends"

func serveUntilEOF(in io.Reader, out io.Writer) error {
	addr, stop, err := serve()
	if err != nil {
		return err
	}
	defer stop()
	if _, err := fmt.Fprintln(out, addr); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// otherProcess starts that server.
func otherProcess() (addr string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	server := exec.Command(self, serveArg)
	in, err1 := server.StdinPipe()
	out, err2 := server.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return "", nil, err
	}
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { _ = in.Close(); _ = server.Wait() }
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, err
	}
	return strings.TrimSpace(line), stop, nil
}

// realStarts measures a real channel whose endpoints are all one server's, until all are connected and the policy
// has told so: until then its work goes on behind the connections.
func realStarts(s settings, w io.Writer) error {
	addr, stop, err := otherProcess()
	if err != nil {
		return err
	}
	defer stop()
	fmt.Fprintf(w, "\nstart on a real channel, server in another process, until all are connected and nothing is left to do\n")
	fmt.Fprintf(w, "%-24s %6s %12s %10s %10s\n", "policy", "n", "first call ms", "wall ms", "CPU ms")
	var first float64
	for _, p := range []peer{roundRobin, evenkeel} {
		var toFirst, wall time.Duration
		u := measured(func() { toFirst, wall, err = startReal(p, addr, s.real) })
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%-24s %6d %12.0f %10.0f %10.0f", p.name, s.real, ms(toFirst), ms(wall), ms(u.cpu))
		if p == roundRobin {
			first = ms(u.cpu)
		} else {
			fmt.Fprintf(w, "   %.3f of round_robin's CPU", ms(u.cpu)/first)
		}
		fmt.Fprintln(w)
	}
	return nil
}

func startReal(p peer, addr string, n int) (toFirst, wall time.Duration, err error) {
	var connected atomic.Int64
	begun := time.Now()
	cc, err := p.channel(addresses(n), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			connected.Add(1)
		}
		return conn, err
	}))
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = cc.Close() }()
	client := testgrpc.NewTestServiceClient(cc)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if _, err := client.EmptyCall(ctx, &testgrpc.Empty{}, grpc.WaitForReady(true)); err != nil {
		return 0, 0, err
	}
	toFirst = time.Since(begun)
	// CPU time at rest is next to nothing: ten times 100 ms with less than 3 of CPU are the end. Once is not enough
	// where others use the machine.
	for quiet := 0; ; {
		before := cpu()
		time.Sleep(100 * time.Millisecond)
		if quiet++; connected.Load() < int64(n) || cpu()-before >= 3*time.Millisecond {
			quiet = 0
		}
		if quiet == 10 {
			return toFirst, time.Since(begun) - time.Second, nil
		}
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
	}
}
