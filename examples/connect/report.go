package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// report says for a reader what became of the calls of clients that have stopped.
func report(clients []*client) string {
	var b strings.Builder
	for _, c := range clients {
		fmt.Fprintf(&b, "\n%s: %d calls, %d of them sent again, %d failed calls\n", c.name, c.calls, c.again, c.failed)
		for _, name := range slices.Sorted(maps.Keys(c.by)) {
			of, moved := c.moves(name)
			fmt.Fprintf(&b, "  %s answered %.1f %%; of %d users whose first it was, %d had another one as well\n",
				name, 100*c.share(name), of, moved)
		}
	}
	return b.String()
}

// share is which part of the calls a backend answered.
func (c *client) share(backend string) float64 { return float64(c.by[backend]) / float64(c.calls) }

// problem is an error if a call failed, or none was made.
func problem(clients []*client) (err error) {
	for _, c := range clients {
		if c.failed > 0 || c.calls == 0 {
			err = errors.Join(err, fmt.Errorf("%s: %d of %d calls failed, the last: %w", c.name, c.failed, c.calls, c.err))
		}
	}
	return err
}
