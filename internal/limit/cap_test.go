package limit

import "testing"

func TestCapIsExactInAnyRace(t *testing.T) {
	for range raceRounds {
		raceForTheCap(t)
	}
}

func raceForTheCap(t *testing.T) {
	t.Helper()
	var c Cap
	var inFlight peak
	together(func() {
		for range 20_000 {
			if c.Acquire(4) {
				inFlight.enter()
				inFlight.leave()
				c.Release()
			}
		}
	})
	together(func() { // faster, so that more of them meet: a lost write shows at rest
		for range 20_000 {
			if c.Acquire(1 << 20) {
				c.Release()
			}
		}
	})
	if most := inFlight.most.Load(); most > 4 || c.InFlight() != 0 {
		t.Errorf("%d at once, %d at rest; want at most 4, and 0", most, c.InFlight())
	}
}

func TestCapReleasedTooOftenStaysAtZero(t *testing.T) {
	var c Cap
	c.Release()
	c.Release()
	if c.InFlight() != 0 || !c.Acquire(1) || c.Acquire(1) {
		t.Errorf("%d in flight, want exactly one of a cap of 1", c.InFlight())
	}
	if c.Acquire(0) || c.Acquire(-1) {
		t.Error("a cap of nothing let one begin")
	}
}

func TestPermitReleasesOnce(t *testing.T) {
	l, _ := distressed(t, Config{}, 2)
	var c Cap
	for range 2 {
		if !c.Acquire(2) {
			t.Fatal("refused below the cap")
		}
	}
	p := PermitOf(l, &c)
	p.Release()
	p.Release()
	if c.InFlight() != 1 || !l.Acquire() || l.Acquire() {
		t.Errorf("%d in flight at the endpoint, want one released there and one in the pool", c.InFlight())
	}
}
