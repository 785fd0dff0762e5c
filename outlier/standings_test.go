package outlier_test

import (
	"testing"

	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// An outcome with its status is the event that the answer itself would have been.
func TestEventOfAResultIsThatOfItsAnswer(t *testing.T) {
	for code := 100; code < 600; code++ {
		for _, after := range []bool{false, true} {
			if after && code != 503 {
				continue
			}
			r := picker.Result{Outcome: picker.OutcomeOfHTTP(code, after), Status: picker.HTTPStatus(code)}
			if got, want := outlier.EventOfResult(r), outlier.EventOfHTTP(code, after); got != want {
				t.Errorf("HTTP %d, %v: %v, want %v", code, after, got, want)
			}
		}
	}
	for code := range uint32(17) {
		for bits := range 16 {
			f := picker.GRPCFacts{BytesSent: bits&1 != 0, BytesReceived: bits&2 != 0, Pushback: bits&4 != 0, CallerLeft: bits&8 != 0}
			r := picker.Result{Outcome: picker.OutcomeOfGRPC(code, f), Status: picker.GRPCStatus(code)}
			if got, want := outlier.EventOfResult(r), outlier.EventOfGRPC(code, f); got != want {
				t.Errorf("gRPC %d, %+v: %v, want %v", code, f, got, want)
			}
		}
	}
	for o := picker.Unknown; o <= picker.Canceled; o++ {
		if got, want := outlier.EventOfResult(picker.Result{Outcome: o}), outlier.EventOf(o); got != want {
			t.Errorf("%v: %v, want %v", o, got, want)
		}
	}
	// A mapping of the caller's own has the last word.
	if got := outlier.EventOfResult(picker.Result{Outcome: picker.Failure, Status: picker.HTTPStatus(404)}); got != outlier.Failed {
		t.Errorf("a 404 that is a failure: %v", got)
	}
}

func TestNoEjectionEjectsNobodyAndKeepsStandings(t *testing.T) {
	d, err := outlier.NewDetector(outlier.Config{Mode: outlier.NoEjection}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Update([]outlier.Member{{ID: "a"}, {ID: "b"}, {ID: "c"}}, 0); err != nil {
		t.Fatal(err)
	}
	h := d.Host(0)
	for now := range int64(100) {
		if h.Observe(outlier.Unreached, h.Token(), now) {
			d.Act(h, now)
		}
		d.Sweep(now * 1e9)
	}
	if got := d.Available(nil); len(got) != 3 {
		t.Errorf("available %v, want all", got)
	}
	d.SetStandings([]outlier.StandingChange{{Index: 0, Standing: outlier.Failing}, {Index: 2, Standing: outlier.Unready}, {Index: 7}}, 200e9)
	if got := d.Available(nil); len(got) != 2 || !d.Panicking() { // one of three: a panic uses the failing one too
		t.Errorf("available %v, panicking %v", got, d.Panicking())
	}
	for mode, want := range map[outlier.Mode]bool{outlier.Soft: false, outlier.Envoy: false, outlier.A50: true, outlier.NoEjection: true} {
		if got := (outlier.Config{Mode: mode}).EjectsNobody(); got != want {
			t.Errorf("%v ejects nobody: %v, want %v", mode, got, want)
		}
	}
}

// Whoever is out is back when the rules eject nobody any more.
func TestChangeToNoEjectionBringsEverybodyBack(t *testing.T) {
	d, err := outlier.NewDetector(outlier.Config{}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Update([]outlier.Member{{ID: "a"}, {ID: "b"}, {ID: "c"}}, 0); err != nil {
		t.Fatal(err)
	}
	h := d.Host(1)
	for range 5 {
		if h.Observe(outlier.Failed, h.Token(), 1) {
			d.Act(h, 1)
		}
	}
	if len(d.Available(nil)) != 2 {
		t.Fatal("not ejected")
	}
	changes, err := d.SetConfig(outlier.Config{Mode: outlier.NoEjection}, 2)
	if err != nil || len(changes) != 1 || changes[0].Reason != outlier.Reconfigured || len(d.Available(nil)) != 3 || d.ProbeDue(1e18, true) {
		t.Errorf("%v, %+v, available %v", err, changes, d.Available(nil))
	}
}

// SetStandings is SetStanding for each.
func TestStandingsInOneGoAreAsOneByOne(t *testing.T) {
	list := []outlier.Member{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}
	news := []outlier.StandingChange{{Index: 0, Standing: outlier.Failing}, {Index: 1, Standing: outlier.Drained}, {Index: 0}, {Index: 3, Standing: 9}}
	var counts [2]outlier.Counts
	for i := range counts {
		d, err := outlier.NewDetector(outlier.Config{}, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Update(list, 0); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			d.SetStandings(news, 5)
		} else {
			for _, c := range news {
				d.SetStanding(c.Index, c.Standing, 5)
			}
		}
		counts[i] = d.Counts()
		if s := d.Stats(0, 5); s.State != outlier.Ramping || s.Standing != outlier.Usable {
			t.Errorf("checks pass again: %+v", s)
		}
		if d.Now() != 5 {
			t.Errorf("now is %d", d.Now())
		}
	}
	if counts[0] != counts[1] || counts[0] != (outlier.Counts{Available: 2, Total: 3}) {
		t.Errorf("%+v in one go, %+v one by one", counts[0], counts[1])
	}
}
