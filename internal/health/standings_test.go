package health

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// One source must not lift what another has taken out.
func TestBug44WorstSourceWins(t *testing.T) {
	var s Standings
	if !s.Available() || s.Worst() != (Verdict{}) {
		t.Fatalf("nobody said anything, and it is %+v", s.Worst())
	}
	if !s.Set(Probes, Failing, "status 503") || s.Available() {
		t.Error("available although its checks fail")
	}
	if s.Set(Resolver, Serving, "agent: up") || s.Available() {
		t.Error("the resolver lifted what the checks took out")
	}
	if s.Set(Ejection, Ejected, "5 failures in a row") {
		t.Error("a lesser trouble changed the standing")
	}
	if got := s.Worst(); got != (Verdict{Probes, Failing, "status 503"}) {
		t.Errorf("worst is %+v", got)
	}
	want := []Verdict{{Probes, Failing, "status 503"}, {Ejection, Ejected, "5 failures in a row"}}
	if got := s.All(nil); !slices.Equal(got, want) {
		t.Errorf("all are %+v, want %+v", got, want)
	}
	if !s.Set(Probes, Serving, "") || s.Worst().Standing != Ejected {
		t.Errorf("worst is %+v, want ejected", s.Worst())
	}
	if !s.Set(Ejection, Serving, "over") || !s.Available() || len(s.All(nil)) != 0 {
		t.Errorf("worst is %+v, want to serve again", s.Worst())
	}
}

// Who is leaving is neither unhealthy nor one of those that should be available.
func TestDrainedEndpointsDoNotCount(t *testing.T) {
	var s Standings
	for _, standing := range []Standing{Serving, Waiting, Ejected, Failing} {
		if s.Set(Probes, standing, ""); !s.Counts() {
			t.Errorf("%v endpoints do not count", standing)
		}
	}
	if s.Set(Drain, Draining, "shutdown"); s.Counts() || s.Available() || s.Worst().Source != Drain {
		t.Errorf("a draining endpoint counts: %+v", s.Worst())
	}
	if s.Set(Drain, Serving, ""); !s.Counts() || s.Worst().Standing != Failing {
		t.Errorf("back from the drain it is %+v", s.Worst())
	}
	if s.Set(sources, Failing, "") || s.Set(Drain, Draining+1, "") {
		t.Error("a source or standing that does not exist changed something")
	}
}

func TestStandingIsTheMaximum(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	var s Standings
	var naive [sources]Standing
	for range 5000 {
		from, standing := Source(r.IntN(sources)), Standing(r.IntN(int(Draining)+1))
		before := slices.Max(naive[:])
		naive[from] = standing
		after := slices.Max(naive[:])
		if changed := s.Set(from, standing, "why"); changed != (before != after) || s.Worst().Standing != after {
			t.Fatalf("%v by %v: changed %v, worst %v; want %v", standing, from, changed, s.Worst().Standing, after)
		}
		if s.Available() != (after == Serving) || s.Counts() != (after != Draining) {
			t.Fatalf("available %v, counts %v at %v", s.Available(), s.Counts(), after)
		}
		if w := s.Worst(); (w.Reason != "") != (after != Serving) || int(w.Source) != max(slices.Index(naive[:], after), 0) && after != Serving {
			t.Fatalf("worst is %+v of %v", w, naive)
		}
	}
}

func TestNames(t *testing.T) {
	for want, got := range map[string]string{
		"ejected": Ejected.String(), "waiting for its first check": Waiting.String(), "checks": Probes.String(),
		"unchecked": Unchecked.String(), "unhealthy": Unhealthy.String(), "drain": Drain.String(),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if Standing(9).String() != "invalid" || Source(9).String() != "invalid" || Status(9).String() != "invalid" {
		t.Error("what does not exist has a name")
	}
}
