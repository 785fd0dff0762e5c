package sim

import (
	"slices"
	"testing"
)

// covering returns rows of levels, one for each axis of which levels[a] is the number, in which every combination of
// strength axes' levels occurs: most faults show in a few settings together, and few rows have all
// pairs or triples. It is greedy: each row begins with the first combination that is missing, and
// takes, axis by axis, the level with which most others come in. The same arguments give the
// same rows.
func covering(levels []int, strength int) (rows [][]int) {
	c := cover{levels: levels, sets: choose(len(levels), strength)}
	for _, set := range c.sets {
		n := 1
		for _, a := range set {
			n *= levels[a]
		}
		c.seen = append(c.seen, make([]bool, n))
	}
	for {
		row, ok := c.begin()
		if !ok {
			return rows
		}
		for a := range row {
			if row[a] < 0 {
				c.fill(row, a)
			}
		}
		c.note(row)
		rows = append(rows, row)
	}
}

// cover is what rows so far have.
type cover struct {
	levels []int
	sets   [][]int  // of axes
	seen   [][]bool // of each set, its combinations
}

// choose returns all sets of k of the axes 0 to n-1, in order.
func choose(n, k int) (sets [][]int) {
	if k == 0 {
		return [][]int{nil}
	}
	for last := k - 1; last < n; last++ {
		for _, head := range choose(last, k-1) {
			sets = append(sets, append(slices.Clone(head), last))
		}
	}
	return sets
}

// index returns which of a set's combinations a row has, -1 while one of the axes has no level.
func (c *cover) index(set, row []int) (i int) {
	for _, a := range set {
		if row[a] < 0 {
			return -1
		}
		i = i*c.levels[a] + row[a]
	}
	return i
}

// begin returns a row of which only the first combination that is missing is set.
func (c *cover) begin() (row []int, ok bool) {
	for s, set := range c.sets {
		i := slices.Index(c.seen[s], false)
		if i < 0 {
			continue
		}
		row = slices.Repeat([]int{-1}, len(c.levels))
		for _, a := range slices.Backward(set) {
			row[a] = i % c.levels[a]
			i /= c.levels[a]
		}
		return row, true
	}
	return nil, false
}

// fill sets an axis to the level with which most that is missing comes in, the first of several.
func (c *cover) fill(row []int, axis int) {
	best, most := 0, -1
	for level := range c.levels[axis] {
		row[axis] = level
		news := 0
		for s, set := range c.sets {
			if !slices.Contains(set, axis) {
				continue
			}
			if i := c.index(set, row); i >= 0 && !c.seen[s][i] {
				news++
			}
		}
		if news > most {
			best, most = level, news
		}
	}
	row[axis] = best
}

func (c *cover) note(row []int) {
	for s, set := range c.sets {
		c.seen[s][c.index(set, row)] = true
	}
}

func TestCoveringRowsHaveAllCombinations(t *testing.T) {
	for _, tc := range []struct {
		levels   []int
		strength int
		most     int // rows: twice what the largest axes need, or what was found by hand
	}{
		{[]int{2, 2, 2}, 2, 4}, {[]int{3, 3, 3, 3}, 2, 13}, {[]int{1, 4, 1}, 2, 4}, {[]int{5}, 1, 5},
		{[]int{6, 5, 6, 9, 3, 3}, 2, 70}, {[]int{6, 5, 6, 9, 3, 3}, 3, 500},
	} {
		rows := covering(tc.levels, tc.strength)
		if len(rows) > tc.most {
			t.Errorf("%v by %d: %d rows, want %d at most", tc.levels, tc.strength, len(rows), tc.most)
		}
		if again := covering(tc.levels, tc.strength); !slices.EqualFunc(rows, again, slices.Equal[[]int]) {
			t.Errorf("%v by %d: other rows the second time", tc.levels, tc.strength)
		}
		for _, row := range rows {
			for a, level := range row {
				if level < 0 || level >= tc.levels[a] {
					t.Fatalf("%v by %d: the row %v", tc.levels, tc.strength, row)
				}
			}
		}
		eachCombination(tc.levels, tc.strength, func(axes, want []int) {
			if !slices.ContainsFunc(rows, func(row []int) bool {
				for i, a := range axes {
					if row[a] != want[i] {
						return false
					}
				}
				return true
			}) {
				t.Errorf("%v by %d: no row has %v at the axes %v", tc.levels, tc.strength, want, axes)
			}
		})
	}
}

// eachCombination counts them out in another way than covering does: by depth.
func eachCombination(levels []int, strength int, do func(axes, want []int)) {
	var walk func(axes, want []int, from int)
	walk = func(axes, want []int, from int) {
		if len(axes) == strength {
			do(axes, want)
			return
		}
		for a := from; a < len(levels); a++ {
			for level := range levels[a] {
				walk(append(slices.Clone(axes), a), append(slices.Clone(want), level), a+1)
			}
		}
	}
	walk(nil, nil, 0)
}
