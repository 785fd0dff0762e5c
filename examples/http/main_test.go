package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The whole program, in a hurry.
func TestRollingRestartsFailNoRequest(t *testing.T) {
	s := settings{rate: 200, rounds: 1, notice: 600 * time.Millisecond, away: 100 * time.Millisecond, settle: 400 * time.Millisecond}
	var out bytes.Buffer
	got, err := roll(t.Context(), s, &out)
	if err != nil {
		t.Fatal(err)
	}
	report := got.report()
	if err := got.problem(); err != nil || !strings.Contains(report, "\n0 failed requests\n") {
		t.Errorf("%v\n%s%s", err, out.String(), report)
	}
	answers := 0
	for _, n := range got.by {
		answers += n
	}
	if answers != got.sent || got.posts < got.sent/5 || len(got.by) != 3 {
		t.Errorf("%d answers to %d requests, %d of them POSTs, are %v", answers, got.sent, got.posts, got.by)
	}
	for name, n := range got.by {
		if n < got.sent/10 {
			t.Errorf("%s gave %d of %d answers, want a tenth at least", name, n, got.sent)
		}
		if n := strings.Count(out.String(), name); n != 3 {
			t.Errorf("%s is named %d times, want 3:\n%s", name, n, out.String())
		}
	}
}

// A backend that is gone without a word costs nothing of which nothing was sent, POSTs with small bodies included.
func TestABackendThatRefusesFailsNoRequest(t *testing.T) {
	var backends []*backend
	for _, name := range []string{"one", "two"} {
		b := newBackend(name)
		if err := b.start(); err != nil {
			t.Fatal(err)
		}
		backends = append(backends, b)
	}
	tr := newTransport(backends)
	tr.Config = evenkeel.Config{Policy: picker.RoundRobin{}} // which asks in turn, and is told by nobody
	defer tr.Close()
	server := httptest.NewServer(newHandler(tr))
	defer server.Close()
	l := &load{tally: &tally{by: map[string]int{}}, client: server.Client()}
	for _, gone := range []int{0, 1} { // of two
		for range 10 {
			l.request(http.MethodPost, server.URL)
		}
		for range 10 {
			l.request(http.MethodGet, server.URL)
		}
		if err := backends[0].stop(); err != nil {
			t.Fatal(err)
		}
		tr.CloseIdleConnections() // a POST on one that just ends may have arrived, for all that anybody knows
		if n := tr.Snapshot()[0].Retries; gone > 0 && n == 0 {
			t.Error("nothing was sent again")
		}
	}
	if err := l.problem(); err != nil {
		t.Error(err)
	}
	if err := backends[1].stop(); err != nil {
		t.Fatal(err)
	}
	if l.request(http.MethodGet, server.URL); l.problem() == nil {
		t.Error("without any backend, no request fails")
	}
}

func TestABodyThatBreaksOffIsNotSentWhole(t *testing.T) {
	broken := errors.New("the client left")
	r := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(strings.NewReader("an or"), iotest.ErrReader(broken)))
	r.ContentLength = 8
	keepSmallBody(r)
	if body, err := io.ReadAll(r.Body); string(body) != "an or" || !errors.Is(err, broken) || r.GetBody != nil {
		t.Errorf("%q, %v", body, err)
	}
}

func TestAnInterruptStopsEverything(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := settings{rate: 100, rounds: 1, notice: time.Minute, away: time.Minute, settle: time.Minute}
	if got, err := roll(ctx, s, io.Discard); got != nil || err == nil || err.Error() != "interrupted" {
		t.Errorf("roll returns %v, %v, want nil, interrupted", got, err)
	}
}

func TestFlagsOutOfRangeAreNamedTogether(t *testing.T) {
	var out, problems bytes.Buffer
	if status := run([]string{"-rate", "NaN", "-rounds", "0", "x"}, &out, &problems); status != 2 {
		t.Errorf("the exit status is %d, want 2", status)
	}
	for _, part := range []string{"-rate is NaN", "-rounds is 0", `"x"`} {
		if !strings.Contains(problems.String(), part) {
			t.Errorf("%q is not in %q", part, problems.String())
		}
	}
	if status := run([]string{"-h"}, &out, &problems); status != 0 || !strings.Contains(out.String(), "-rate r") {
		t.Errorf("-h ends with %d and prints %q", status, out.String())
	}
}
