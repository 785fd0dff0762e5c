package hash

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// sameRing fails unless an updated ring is that of a build, word for word.
func sameRing(t *testing.T, got, want *Ring) {
	t.Helper()
	switch {
	case !slices.Equal(got.circle.points, want.circle.points):
		t.Fatal("the update has other points than a build")
	case !slices.Equal(got.circle.starts, want.circle.starts):
		t.Fatal("the update has another index than a build")
	case got.circle.shift != want.circle.shift:
		t.Fatalf("the update has shift %d, a build %d", got.circle.shift, want.circle.shift)
	case !slices.Equal(got.counts, want.counts) || !got.list.equal(want.list):
		t.Fatal("the update has another list than a build")
	}
}

// mutate changes a list in one to three random ways.
func mutate(r *rand.Rand, list []Endpoint) []Endpoint {
	list = slices.Clone(list)
	for range 1 + r.IntN(3) {
		i := r.IntN(len(list))
		switch r.IntN(6) {
		case 0:
			list = append(list, Endpoint{ID: fleet(1)[0].ID + string(rune('a'+r.IntN(26))), Weight: float64(1 + r.IntN(3))})
		case 1:
			if len(list) > 1 {
				list = slices.Delete(list, i, i+1)
			}
		case 2:
			list[i].Weight = float64(r.IntN(9)) / 4
		case 3:
			list = shuffled(r, list)
		case 4:
			list[i].Weight += 1.0 / 1024
		case 5:
			list = append(list, Endpoint{ID: fleet(40)[r.IntN(40)].ID, Weight: 1})
		}
	}
	return list
}

func TestAnUpdatedRingIsThatOfABuild(t *testing.T) {
	for _, c := range []RingConfig{
		{Points: 1, MergeDuplicates: true}, {Points: 3, MergeDuplicates: true},
		{Points: 64, MergeDuplicates: true}, {Points: 40, MergeDuplicates: true, Ketama: true},
	} {
		r := fixedRand(uint64(c.Points))
		list := fleet(20)
		ring := newTestRing(t, list, c)
		for range 400 {
			next := mutate(r, list)
			got, err := ring.Update(next)
			want, wantErr := NewRing(next, c)
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("the update says %v, a build %v", err, wantErr)
			}
			if err != nil {
				if got != ring {
					t.Fatal("an update that fails does not return the receiver")
				}
				continue
			}
			sameRing(t, got, want)
			list, ring = next, got
		}
	}
}

// Places of 40 bits hardly ever collide by themselves, so here they have few.
func TestAnEditedCircleIsThatOfASort(t *testing.T) {
	r := fixedRand(6)
	for range 3000 {
		n := 1 + r.IntN(6)
		position := make([]uint32, n)
		gone, shift := make([]bool, n), uint32(0)
		newcomer := r.IntN(n + 1) // comes before the old one of this position
		for i := range n {
			if i == newcomer {
				shift++
			}
			position[i] = shift
			if gone[i] = r.IntN(4) == 0; !gone[i] {
				shift++
			}
		}
		newPosition := uint32(0)
		if newcomer < n {
			newPosition = position[newcomer] - 1
		} else {
			newPosition = shift
		}
		var before, after []uint64
		var e edit
		e.position = position
		for range 1 + r.IntN(30) {
			place, owner := uint64(r.IntN(8))<<61, r.IntN(n)
			p := place | uint64(owner)
			before = append(before, p)
			if gone[owner] || r.IntN(8) == 0 {
				e.removed = append(e.removed, p)
			} else {
				after = append(after, place|uint64(position[owner]))
			}
		}
		for range r.IntN(6) {
			p := uint64(r.IntN(8))<<61 | uint64(newPosition)
			e.added = append(e.added, p)
			after = append(after, p)
		}
		if len(after) == 0 {
			continue
		}
		old, want := newCircle(before), newCircle(after)
		slices.Sort(e.removed)
		slices.Sort(e.added)
		got := old.edit(e)
		if !slices.Equal(got.points, want.points) || !slices.Equal(got.starts, want.starts) {
			t.Fatalf("edited:\n%x %v\nwant\n%x %v", got.points, got.starts, want.points, want.starts)
		}
		slices.Sort(after)
		if !slices.Equal(want.points[:len(after)], after) {
			t.Fatalf("the circle holds %x, want %x", want.points, after)
		}
	}
}

func TestAnUpdateWithoutAChangeIsTheReceiver(t *testing.T) {
	list := fleet(10)
	ring := newTestRing(t, list, RingConfig{})
	same, err := ring.Update(append(slices.Clone(list), Endpoint{ID: "drained"}))
	if err != nil || same != ring {
		t.Errorf("a drained endpoint more gives %p, %v, want the receiver %p", same, err, ring)
	}
	if kept, err := ring.Update(weighted(2, 0)); kept != ring || !errors.Is(err, ErrEmpty) {
		t.Errorf("nobody left gives %p, %v, want the receiver and ErrEmpty", kept, err)
	}
	slices.Reverse(list)
	other, err := ring.Update(list)
	if err != nil || other == ring {
		t.Fatalf("another order gives %p, %v, want another ring than %p", other, err, ring)
	}
	if &other.circle.points[0] != &ring.circle.points[0] {
		t.Error("another order copies the points")
	}
	if i := ring.Lookup(42); other.Lookup(42) != 9-i {
		t.Errorf("the owner is %d in the order and %d in reverse, want %d", i, other.Lookup(42), 9-i)
	}
}

func TestAnUpdateLeavesTheOldRingAsItWas(t *testing.T) {
	list := fleet(30)
	ring := newTestRing(t, list, RingConfig{})
	points, starts := slices.Clone(ring.circle.points), slices.Clone(ring.circle.starts)
	if _, err := ring.Update(list[1:]); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(points, ring.circle.points) || !slices.Equal(starts, ring.circle.starts) {
		t.Error("the update wrote to the ring that it began from")
	}
}
