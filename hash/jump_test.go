package hash

import (
	"fmt"
	"math"
	"testing"
)

func TestJumpGivesThePublishedShards(t *testing.T) {
	for _, c := range []struct {
		key  uint64
		n    int
		want int
	}{
		{1, 1, 0},
		{42, 57, 43},
		{0xDEAD10CC, 1, 0},
		{0xDEAD10CC, 666, 361},
		{256, 1024, 520},
		{7, 0, -1},
		{7, -10, -1},
		{0, math.MaxInt32, 0},
	} {
		got := Jump(c.key, c.n)
		if c.n == math.MaxInt32 {
			if got < 0 || got >= c.n {
				t.Errorf("Jump(%d, %d) is %d, want a shard", c.key, c.n, got)
			}
		} else if got != c.want {
			t.Errorf("Jump(%d, %d) is %d, want %d", c.key, c.n, got, c.want)
		}
	}
}

// The same in whole numbers. Where the quotient is within a rounding of a whole number they may
// differ; that is rare.
func TestJumpAgreesWithWholeNumbers(t *testing.T) {
	const keys = 20_000
	for _, n := range []int{10, 1000, math.MaxInt32} {
		differ := 0
		for k := range keys {
			key := Sum(fmt.Sprint("key", k))
			got := Jump(key, n)
			want := uint64(0)
			for next := uint64(0); next < uint64(n); {
				want = next
				key = key*2862933555777941757 + 1
				next = (want + 1) << 31 / (key>>33 + 1)
			}
			if got != int(want) {
				differ++
			}
		}
		if differ > keys/1000 {
			t.Errorf("%d of %d keys differ among %d shards", differ, keys, n)
		}
	}
}

func TestJumpMovesKeysOnlyToTheNewShard(t *testing.T) {
	const keys = 5000
	for n := 1; n <= 64; n++ {
		moved := 0
		for k := range keys {
			key := Sum(fmt.Sprint("key", k))
			before, after := Jump(key, n), Jump(key, n+1)
			if before != after {
				moved++
				if after != n {
					t.Fatalf("from %d to %d shards key %d moved from %d to %d", n, n+1, k, before, after)
				}
			}
		}
		p := 1 / float64(n+1)
		if sd := math.Sqrt(keys * p * (1 - p)); math.Abs(float64(moved)-keys*p) > 5*sd {
			t.Errorf("from %d to %d shards %d of %d keys moved, want about %.0f", n, n+1, moved, keys, keys*p)
		}
	}
}

// What its documentation warns of.
func TestJumpMovesHalfOfTheKeysWhenOneInTheMiddleGoes(t *testing.T) {
	const keys, n, gone = 20_000, 100, 50
	moved := 0
	for k := range keys {
		key := Sum(fmt.Sprint("key", k))
		before, after := Jump(key, n), Jump(key, n-1)
		if after >= gone {
			after++ // numbers of those behind it, as they were before
		}
		if before != gone && before != after {
			moved++
		}
	}
	if moved < keys*45/100 || moved > keys*54/100 {
		t.Errorf("%d of %d keys moved between shards that stayed, want about half", moved, keys)
	}
}
