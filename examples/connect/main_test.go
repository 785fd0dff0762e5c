package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The whole program, in a hurry.
func TestARestartFailsNoCallAndMovesItsUsersAlone(t *testing.T) {
	s := settings{around: 800 * time.Millisecond, notice: 1500 * time.Millisecond, away: 100 * time.Millisecond, back: 10 * time.Second}
	var out bytes.Buffer
	clients, err := compare(t.Context(), s, &out)
	if err != nil {
		t.Fatal(err)
	}
	text := out.String() + report(clients)
	if err := problem(clients); err != nil || strings.Count(text, " 0 failed calls\n") != 2 {
		t.Errorf("%v\n%s", err, text)
	}
	load, user := clients[0], clients[1]
	if load.again == 0 {
		t.Errorf("nobody told %s of the restart, and nothing was sent again\n%s", load.name, text)
	}
	for _, backend := range []string{"backend 1", "backend 2", "backend 3"} {
		if share := load.share(backend); share < 0.1 {
			t.Errorf("%s: %s answered %.3f of the calls, want a tenth at least\n%s", load.name, backend, share, text)
		}
		switch of, moved := user.moves(backend); {
		case of == 0:
			t.Errorf("%s has no user\n%s", backend, text)
		case backend == "backend 2" && moved != of, backend != "backend 2" && moved != 0:
			t.Errorf("%d of %d users of %s had another one as well\n%s", moved, of, backend, text)
		}
	}
	if n := user.strangers(); n > 0 {
		t.Errorf("%d users are not back\n%s", n, text)
	}
	if load.calls != load.by["backend 1"]+load.by["backend 2"]+load.by["backend 3"] {
		t.Errorf("%d calls, answered by %v", load.calls, load.by)
	}
}

func TestAnInterruptStopsEverything(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := settings{around: time.Minute, notice: time.Minute, away: time.Minute, back: time.Minute}
	if clients, err := compare(ctx, s, io.Discard); clients != nil || err == nil || err.Error() != "interrupted" {
		t.Errorf("compare returns %v, %v, want nil, interrupted", clients, err)
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-around", "1ms"}, {"-nonsense"}, {"now"}} {
		var out bytes.Buffer
		if status := run(args, &out, &out); status != 2 || out.Len() == 0 {
			t.Errorf("%v: status %d, %q, want 2", args, status, out.String())
		}
	}
}
