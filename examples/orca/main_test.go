package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Small, on real servers. How near the shares come to the even ones depends on the machine; that the largest server gets
// the most does not.
func TestSharesFollowWhatServersReport(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	s := settings{clients: 20, rate: 300, warmUp: 3 * time.Second, measure: 2 * time.Second}
	f, err := try(t.Context(), s, contenders[1].config)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, share := range f.shares {
		sum += share
	}
	if math.Abs(sum-1) > 1e-9 || f.shares[2] < f.shares[0] || len(f.latencies) == 0 {
		t.Errorf("the shares are %.2f of %d requests", f.shares, len(f.latencies))
	}
}

func TestEvenSharesUseAllServersAlike(t *testing.T) {
	s := settings{rate: 700}
	for i, share := range evenShares(s) {
		used := (share*s.rate*work.Seconds() + float64(rooms[i].hidden)) / float64(rooms[i].places)
		if math.Abs(used-0.6) > 1e-9 {
			t.Errorf("server %d is used to %v, want 0.6", i, used)
		}
	}
}

func TestFlagsOutOfRangeAreNamedTogether(t *testing.T) {
	var out, problems bytes.Buffer
	if status := run([]string{"-clients", "0", "-rate", "NaN", "-time", "1ms", "x"}, &out, &problems); status != 2 {
		t.Errorf("the exit status is %d, want 2", status)
	}
	for _, part := range []string{"-clients is 0", "-rate is NaN", "-time is 1ms", `"x"`} {
		if !strings.Contains(problems.String(), part) {
			t.Errorf("%q is not in %q", part, problems.String())
		}
	}
	if status := run([]string{"-h"}, &out, &problems); status != 0 || !strings.Contains(out.String(), "-clients n") {
		t.Errorf("-h ends with %d and prints %q", status, out.String())
	}
}
