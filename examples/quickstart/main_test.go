package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The whole program on real servers. What it measures depends on the machine; that
// every request is accounted for does not.
func TestAShortRunAccountsForEveryRequest(t *testing.T) {
	s := settings{duration: time.Second, rate: 150, seed: 7}
	d, err := compare(t.Context(), s, allLanes(), &progress{out: io.Discard})
	if d == nil || err != nil {
		t.Fatalf("compare returns %v, %v", d, err)
	}
	sent := len(d.requests) - d.unsent
	if n := strings.Count(report(d), "\n"+evenkeel+"  "); n != 2 {
		t.Errorf("the report has %d rows for %s, want 2:\n%s", n, evenkeel, report(d))
	}
	for _, l := range d.lanes {
		f := l.measured(sent)
		if f.errors >= sent {
			t.Errorf("%v: %d errors, want less than %d", l, f.errors, sent)
		}
		for i, d := range l.took[:sent] {
			if d <= 0 || d > timeout {
				t.Errorf("%v: request %d took %v, want more than 0 and up to %v", l, i, d, timeout)
			}
		}
		// A request that gave up may have done so before it got to a server.
		if n := f.slow.whole; n < int64(sent-f.errors) || n > int64(sent) {
			t.Errorf("%v: %d requests arrived, want %d to %d", l, n, sent-f.errors, sent)
		}
		if f.broken.whole > f.slow.whole {
			t.Errorf("%v: %d of %d requests arrived in the outage", l, f.broken.whole, f.slow.whole)
		}
		if l.balancer != roundRobin || sent < 10*fleetSize {
			continue
		}
		for i, b := range l.fleet.backends {
			if b.arrived.Load() == 0 {
				t.Errorf("%v: nothing arrived at server %d", l, i)
			}
		}
	}
}

// cancelOnWrite interrupts the load as soon as there is something to show.
type cancelOnWrite context.CancelFunc

func (c cancelOnWrite) Write(p []byte) (int, error) {
	c()
	return len(p), nil
}

func TestAnInterruptStopsEverything(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := settings{duration: time.Minute, rate: 100}
	d, err := compare(ctx, s, allLanes(), &progress{out: cancelOnWrite(cancel)})
	if d != nil || err == nil || err.Error() != "interrupted" {
		t.Errorf("compare returns %v, %v, want nil, interrupted", d, err)
	}
}

func TestAClientThatCannotStartIsReported(t *testing.T) {
	lanes := allLanes()
	lanes[2].connect = func(context.Context, []string) (callFunc, func() error, error) {
		return nil, nil, errors.New("no more sockets")
	}
	d, err := compare(t.Context(), defaults, lanes, &progress{out: io.Discard})
	const want = "starting a client for round robin over HTTP: no more sockets"
	if d != nil || err == nil || err.Error() != want {
		t.Errorf("compare returns %v, %v, want nil, %s", d, err, want)
	}
}

func TestAGRPCClientWithoutConnectionIsReported(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts, let alone answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = grpcClient(roundRobinConfig)(ctx, []string{l.Addr().String()})
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "no connection") {
		t.Errorf("the error is %v, want no connection", err)
	}
}

func TestFlagsThatCannotBeUsedAreAllNamed(t *testing.T) {
	const hint = "(-h explains the flags)\n"
	for _, tc := range []struct{ args, want string }{
		{"-rate 0", "quickstart: -rate is \"0\", want a whole number from 10 to 700\n"},
		{"-rate 701", "quickstart: -rate is \"701\", want a whole number from 10 to 700\n"},
		{"-rate 1e3", "quickstart: -rate is \"1e3\", want a whole number from 10 to 700\n"},
		{"-duration 999ms", "quickstart: -duration is \"999ms\", want 1s to 10m0s, such as 16s\n"},
		{"-duration 16", "quickstart: -duration is \"16\", want 1s to 10m0s, such as 16s\n"},
		{"-duration -5s -rate= -seed -1", "quickstart: -duration is \"-5s\", want 1s to 10m0s, such as 16s\n" +
			"quickstart: -rate is \"\", want a whole number from 10 to 700\n" +
			"quickstart: -seed is \"-1\", want a whole number from 0 to 18446744073709551615\n"},
		{"-seed 3 now", "quickstart: there is an argument \"now\", want flags alone\n"},
		{"-speed 3", "quickstart: flag provided but not defined: -speed\n"},
	} {
		var stdout, stderr bytes.Buffer
		status := run(strings.Fields(tc.args), &stdout, &stderr)
		if status != 2 || stdout.Len() > 0 || stderr.String() != tc.want+hint {
			t.Errorf("%s: status %d, stdout %q, stderr\n%s\nwant status 2 and\n%s", tc.args, status, &stdout, &stderr, tc.want+hint)
		}
	}
}

func TestHelpNamesEveryFlagWithItsDefault(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if status := run([]string{"-h"}, &stdout, &stderr); status != 0 || stderr.Len() > 0 {
		t.Errorf("status %d, stderr %q", status, &stderr)
	}
	for _, want := range []string{
		"-duration D ", "1s to 10m0s (default 16s)", "-rate N ", "10 to 700 (default 350)", "-seed N ", "(default 1)",
	} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, &stdout)
		}
	}
}

func TestFlagsInBoundsAreTaken(t *testing.T) {
	if s, err := parseFlags(nil); err != nil || s != defaults {
		t.Errorf("no flags: %+v, %v, want %+v", s, err, defaults)
	}
	want := settings{duration: time.Second, rate: 10, seed: 1<<64 - 1}
	s, err := parseFlags(strings.Fields("-duration 1s -rate 10 -seed 18446744073709551615"))
	if err != nil || s != want {
		t.Errorf("%+v, %v, want %+v", s, err, want)
	}
}
