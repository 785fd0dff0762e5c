package config

import (
	"fmt"
	"slices"
	"strings"
)

// suggest says what could be meant by name, which is none of known.
func suggest(name string, known []string) string {
	if len(known) < 2 {
		return oneOf(known)
	}
	return fmt.Sprintf("%s (nearest: %s)", oneOf(known), nearest(name, known))
}

// oneOf lists known names for an error text.
func oneOf(known []string) string {
	switch len(known) {
	case 0:
		return "none here"
	case 1:
		return known[0]
	}
	return "one of " + strings.Join(known, ", ")
}

// nearest returns the one of known, which is not empty, that fewest edits turn name into; of several
// the first.
func nearest(name string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int { return distance(name, a) - distance(name, b) })
}

// distance is the number of bytes to insert, remove or replace to make b of a (Levenshtein, in the
// two-row form of Wagner and Fischer).
func distance(a, b string) int {
	// No known name is that long, and the cost is the product of the lengths.
	a = a[:min(len(a), 64)]
	above := make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	row := make([]int, len(b)+1)
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			replace := above[j]
			if a[i] != b[j] {
				replace++
			}
			row[j+1] = min(replace, above[j+1]+1, row[j]+1)
		}
		above, row = row, above
	}
	return above[len(b)]
}
