package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"time"
)

// settings is what the flags say.
type settings struct {
	duration time.Duration // of the load
	rate     int           // requests a second to each fleet
	seed     uint64        // of arrivals and of service times
}

// Bounds of the flags. At the highest rate the healthy servers are just not
// overloaded while one of them fails.
const (
	minDuration, maxDuration = time.Second, 10 * time.Minute
	minRate, maxRate         = 10, 700
)

var defaults = settings{duration: 16 * time.Second, rate: 350, seed: 1}

var usage = fmt.Sprintf(`usage: quickstart [flags]

Sends the same load through round robin and through Evenkeel, over gRPC and over
HTTP, to fleets of servers in this process of which one is slow and one fails.

  -duration D   how long to send: %v to %v (default %v)
  -rate N       requests a second to each of the four fleets: %d to %d (default %d)
  -seed N       of arrivals and of service times: the same seed makes the same
                requests (default %d)
`, minDuration, maxDuration, defaults.duration, minRate, maxRate, defaults.rate, defaults.seed)

// parseFlags returns what the arguments say, or every problem that they have. The
// error is flag.ErrHelp for -h.
func parseFlags(args []string) (settings, error) {
	// As text, so that one run tells all that is wrong, with the bounds.
	set := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	duration := set.String("duration", defaults.duration.String(), "")
	rate := set.String("rate", strconv.Itoa(defaults.rate), "")
	seed := set.String("seed", strconv.FormatUint(defaults.seed, 10), "")
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return settings{}, err
		}
		return settings{}, fmt.Errorf("quickstart: %w", err)
	}
	var s settings
	var problems []error
	refuse := func(format string, a ...any) {
		problems = append(problems, fmt.Errorf("quickstart: "+format, a...))
	}
	var err error
	if s.duration, err = time.ParseDuration(*duration); err != nil || s.duration < minDuration || s.duration > maxDuration {
		refuse("-duration is %q, want %v to %v, such as %v", *duration, minDuration, maxDuration, defaults.duration)
	}
	if s.rate, err = strconv.Atoi(*rate); err != nil || s.rate < minRate || s.rate > maxRate {
		refuse("-rate is %q, want a whole number from %d to %d", *rate, minRate, maxRate)
	}
	if s.seed, err = strconv.ParseUint(*seed, 10, 64); err != nil {
		refuse("-seed is %q, want a whole number from 0 to %d", *seed, uint64(1<<64-1))
	}
	if set.NArg() > 0 {
		refuse("there is an argument %q, want flags alone", set.Arg(0))
	}
	return s, errors.Join(problems...)
}
