package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/evenkeel/evenkeel/examples/grpc/deployment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shown is what the client has printed so far.
type shown struct {
	mu   sync.Mutex
	text strings.Builder
	news chan struct{}
}

func (s *shown) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
	return s.text.Write(b)
}

func (s *shown) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), text)
}

// waitFor waits until the client has printed a text.
func (s *shown) waitFor(t *testing.T, ctx context.Context, text string) {
	t.Helper()
	for !s.has(text) {
		select {
		case <-s.news:
		case <-ctx.Done():
			t.Fatalf("the client has not printed %q:\n%s", text, s.text.String())
		}
	}
}

// Client and servers as a reader runs them, but in a hurry: the client finds a replica that
// comes later, since connections age, and no call fails over it.
func TestClientFindsReplicasThatComeLater(t *testing.T) {
	d, err := deployment.Start(deployment.Config{DNS: "127.0.0.1:0", MaxAge: 200 * time.Millisecond, Work: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for range 2 {
		if _, err := d.Add(); err != nil {
			t.Skipf("no second address on this machine: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	running, stop := context.WithCancel(ctx)
	defer stop()
	out, errs := &shown{news: make(chan struct{}, 1)}, &shown{news: make(chan struct{}, 1)}
	status := make(chan int, 1)
	go func() {
		status <- run(running, []string{"-target", d.Target(), "-every", "2ms", "-show", "20ms", "-resolve", "50ms"}, out, errs)
	}()
	out.waitFor(t, ctx, "READY, 2 of 2 connections ready")
	if _, err := d.Add(); err != nil {
		t.Fatal(err)
	}
	out.waitFor(t, ctx, "READY, 3 of 3 connections ready")
	out.waitFor(t, ctx, "connectivity: READY")
	stop()
	if code := <-status; code != 0 || !out.has("calls, 0 failed") {
		t.Errorf("status %d\n%s%s", code, out.text.String(), errs.text.String())
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-every", "0s"}, {"-nonsense"}} {
		out := &shown{news: make(chan struct{}, 1)}
		if code := run(context.Background(), args, out, out); code != 2 {
			t.Errorf("%v: status %d, want 2", args, code)
		}
	}
}
