package main

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServerSaysWhereItIsAndStops(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	var out, errs strings.Builder
	code := run(ctx, []string{"-port", "0", "-dns", "127.0.0.1:0", "-replicas", "1"}, &out, &errs)
	if code != 0 || !strings.Contains(out.String(), "clients dial dns://127.0.0.1:") {
		t.Errorf("status %d\n%s%s", code, out.String(), errs.String())
	}
	if code := run(ctx, []string{"-replicas", "0"}, &out, &errs); code != 2 {
		t.Errorf("status %d for no replicas, want 2", code)
	}
}
