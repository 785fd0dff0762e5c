//go:build unix

package chaos

import (
	"cmp"
	"slices"
	"testing"
	"time"
)

// samples are requests. What looks at windows of time wants them in the order of their starts.
type samples []sample

// inOrder sorts them by their starts.
func (s samples) inOrder() samples {
	slices.SortFunc(s, func(a, b sample) int { return cmp.Compare(a.start, b.start) })
	return s
}

// between are those that were under way at some time from one instant to another.
func (s samples) between(from, to time.Duration) samples {
	return s.that(func(x sample) bool { return x.start < to && x.end >= from })
}

// started are those, in order, that began from one instant on, before another.
func (s samples) started(from, to time.Duration) samples {
	i, _ := slices.BinarySearchFunc(s, from, func(x sample, at time.Duration) int { return cmp.Compare(x.start, at) })
	k, _ := slices.BinarySearchFunc(s, to, func(x sample, at time.Duration) int { return cmp.Compare(x.start, at) })
	return s[i:max(i, k)]
}

// to are those that went to an address.
func (s samples) to(addr string) samples {
	return s.that(func(x sample) bool { return x.addr == addr })
}

// well are those that did not fail.
func (s samples) well() samples { return s.that(func(x sample) bool { return x.failure == "" }) }

func (s samples) that(is func(sample) bool) samples {
	var some samples
	for _, x := range s {
		if is(x) {
			some = append(some, x)
		}
	}
	return some
}

// since are the same, with instants that count from later on.
func (s samples) since(later time.Duration) samples {
	shifted := make(samples, len(s))
	for i, x := range s {
		x.start, x.end = x.start-later, x.end-later
		shifted[i] = x
	}
	return shifted
}

// first is the earliest start; if there are none, what is given.
func (s samples) first(none time.Duration) time.Duration {
	for _, x := range s {
		none = min(none, x.start)
	}
	return none
}

// part is how large a part of all some are; of none, all.
func part(some, of samples) float64 {
	if len(of) == 0 {
		return 1
	}
	return float64(len(some)) / float64(len(of))
}

// mean is the mean duration.
func (s samples) mean() time.Duration {
	var sum time.Duration
	for _, x := range s {
		sum += x.end - x.start
	}
	return sum / time.Duration(max(len(s), 1))
}

// Success is looked at in windows of a second; a share is of few requests, and needs two.
const (
	successWindow = time.Second
	shareWindow   = 2 * time.Second
	windowStep    = 100 * time.Millisecond
)

// recovered is how long after an instant success is 99 % again, in the window from there on and in
// all later ones until the end. A single failure counts for nothing: where there are less than a hundred
// requests, it would be more than 1 %. They are in order, as for returned.
func (s samples) recovered(from, end time.Duration) time.Duration {
	bad := -windowStep
	for d := time.Duration(0); from+d+successWindow <= end; d += windowStep {
		if w := s.started(from+d, from+d+successWindow); part(w.well(), w) < 0.99 && len(w)-len(w.well()) > 1 {
			bad = d
		}
	}
	return bad + windowStep
}

// returned is how long after an instant an address has at least half as many of the requests as the
// one of the others that has fewest; ok is false if it has not until the end.
func (s samples) returned(addr string, others []string, from, end time.Duration) (after time.Duration, ok bool) {
	for d := time.Duration(0); from+d+shareWindow <= end; d += windowStep {
		w := s.started(from+d, from+d+shareWindow)
		n := map[string]int{}
		for _, x := range w {
			n[x.addr]++
		}
		fewest := len(w)
		for _, other := range others {
			fewest = min(fewest, n[other])
		}
		if n[addr] > 0 && 2*n[addr] >= fewest {
			return d, true
		}
	}
	return end - from, false
}

// without are those that were not under way while any of the others was.
func (s samples) without(others samples) samples {
	var spans samples // of the others, without overlaps
	for _, o := range slices.Clone(others).inOrder() {
		if n := len(spans); n > 0 && o.start <= spans[n-1].end {
			spans[n-1].end = max(spans[n-1].end, o.end)
		} else {
			spans = append(spans, o)
		}
	}
	return s.that(func(x sample) bool {
		i, _ := slices.BinarySearchFunc(spans, x.start, func(o sample, at time.Duration) int {
			if o.end <= at {
				return -1
			}
			return 1
		})
		return i == len(spans) || spans[i].start >= x.end
	})
}

func TestFiguresOfSamples(t *testing.T) {
	var s samples
	// A hundred requests a second for ten seconds, of 50 ms each. Those of the seconds 2 to 5 to "b"
	// fail, which is every tenth; "b" gets none from second 3 to 7.
	for i := range 1000 {
		x := sample{start: time.Duration(i) * 10 * time.Millisecond, addr: "a"}
		x.end = x.start + 50*time.Millisecond
		if i%10 == 0 && (i < 300 || i >= 700) {
			x.addr = "b"
			if i >= 200 {
				x.failure = "deadline"
			}
		}
		if i >= 750 {
			x.failure = ""
		}
		s = append(s, x)
	}
	if got := len(s.between(time.Second, 2*time.Second)); got != 106-1 {
		t.Errorf("%d under way in a second, want a hundred and five from before", got)
	}
	w := s.started(2*time.Second, 3*time.Second)
	if got := part(w.well(), w); got != 0.9 {
		t.Errorf("success %v, want 0.9", got)
	}
	if got := part(w.to("b"), w); got != 0.1 {
		t.Errorf("share %v, want 0.1", got)
	}
	// The last two failures of a window are at 7.3 and 7.4 s.
	if got := s.recovered(5*time.Second, 10*time.Second); got != 2400*time.Millisecond {
		t.Errorf("recovered after %v, want 2.4 s", got)
	}
	if got := s.recovered(8*time.Second, 10*time.Second); got != 0 {
		t.Errorf("recovered after %v of no trouble, want 0", got)
	}
	// It has 10 of 190 when the window ends at 8 s, and half of "d"'s 20 of 210.
	for i := range 100 {
		s = append(s, sample{start: time.Duration(i) * 100 * time.Millisecond, addr: "d"})
	}
	few := s[:1000:1000]
	s = slices.Clone(s).inOrder()
	if got, ok := s.returned("b", []string{"a", "d"}, 5*time.Second, 10*time.Second); !ok || got != time.Second {
		t.Errorf("returned after %v, %v, want 1 s", got, ok)
	}
	if _, ok := s.returned("c", []string{"a", "d"}, 0, 10*time.Second); ok {
		t.Error("somebody who never came returned")
	}
	s = few
	// Of the hundred of a second, those of the 50 ms before and of the 100 ms themselves.
	stuck := samples{{start: 1500 * time.Millisecond, end: 1600 * time.Millisecond}}
	if got := 1000 - len(s.without(stuck)); got != 14 {
		t.Errorf("%d left out, want 14", got)
	}
	if got := s.mean(); got != 50*time.Millisecond {
		t.Errorf("mean %v, want 50 ms", got)
	}
}
