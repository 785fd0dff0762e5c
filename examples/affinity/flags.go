package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
)

// settings is what the flags say.
type settings struct {
	objects int
	cache   int    // objects that a cache holds
	seed    uint64 // of the order in which objects are asked for
}

// Bounds of the flags. With fewer objects a few more or less would show in the shares.
const minObjects, maxObjects = 100, 100_000

var defaults = settingsFor(2000, 1)

// settingsFor gives the caches together room for half as many objects again, so that none
// has to forget what it gets more than its share of.
func settingsFor(objects int, seed uint64) settings {
	return settings{objects: objects, cache: objects * 3 / 2 / before, seed: seed}
}

var usage = fmt.Sprintf(`usage: affinity [flags]

Asks a row of ten caches, and then eleven, for the same objects: in turn, by
modulo hashing, and by consistent hashing.

  -objects N    how many: %d to %d (default %d)
  -seed N       of the order in which they are asked for (default %d)
`, minObjects, maxObjects, defaults.objects, defaults.seed)

// parseFlags returns what the arguments say, or every problem that they have. The
// error is flag.ErrHelp for -h.
func parseFlags(args []string) (settings, error) {
	// As text, so that one run tells all that is wrong, with the bounds.
	set := flag.NewFlagSet("affinity", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	objects := set.String("objects", strconv.Itoa(defaults.objects), "")
	seed := set.String("seed", strconv.FormatUint(defaults.seed, 10), "")
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return settings{}, err
		}
		return settings{}, fmt.Errorf("affinity: %w", err)
	}
	var problems []error
	refuse := func(format string, a ...any) {
		problems = append(problems, fmt.Errorf("affinity: "+format, a...))
	}
	n, err := strconv.Atoi(*objects)
	if err != nil || n < minObjects || n > maxObjects {
		refuse("-objects is %q, want a whole number from %d to %d", *objects, minObjects, maxObjects)
	}
	random, err := strconv.ParseUint(*seed, 10, 64)
	if err != nil {
		refuse("-seed is %q, want a whole number from 0 to %d", *seed, uint64(1<<64-1))
	}
	if set.NArg() > 0 {
		refuse("there is an argument %q, want flags alone", set.Arg(0))
	}
	return settingsFor(n, random), errors.Join(problems...)
}
