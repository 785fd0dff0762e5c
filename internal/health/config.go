package health

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// None means none at all as the value of [Config].Jitter, where 0 means the default.
const None = -1

// Bounds of [Config].
const (
	MinInterval  = 10 * time.Millisecond
	MaxInterval  = time.Hour
	MaxThreshold = 1000
)

// Config says when endpoints are checked and what the results mean. What is sent and what
// is expected is the prober's. The zero Config is the documented default.
type Config struct {
	// Interval is the time from the start of a check to the start of the next, so that
	// checks which time out do not delay the verdict. 0 means 5 s; otherwise [MinInterval]
	// to [MaxInterval].
	Interval time.Duration
	// Timeout is how long a check may take. 0 means 1 s, or Interval if that is shorter;
	// otherwise more than 0 and at most Interval.
	Timeout time.Duration
	// Jitter spreads each interval by this share of it, to both sides. 0 means 0.1, [None]
	// none; at most 1.
	Jitter float64
	// Rise is how many checks in a row must pass to bring an endpoint back. 0 means 2; at
	// most [MaxThreshold]. The first check of an endpoint decides alone.
	Rise int
	// Fall is how many checks in a row must fail to take an endpoint out. 0 means 3; at
	// most [MaxThreshold].
	Fall int
	// UnexpectedAtOnce makes one answer that is not an expected one take the endpoint out: it
	// is a clear no, where a lost check may be bad luck.
	UnexpectedAtOnce bool
	// NoTraffic is the interval while the pool has no requests. 0 means 60 s, or Interval
	// if that is longer; otherwise Interval to [MaxInterval].
	NoTraffic time.Duration
	// UseUnchecked says that a new endpoint is used until its first check has ended. By
	// default it waits for that, for at most Timeout, while the others serve.
	UseUnchecked bool
}

// Defaults of [Config].
const (
	defaultInterval  = 5 * time.Second
	defaultTimeout   = time.Second
	defaultJitter    = 0.1
	defaultRise      = 2
	defaultFall      = 3
	defaultNoTraffic = time.Minute
)

// Validate reports every problem of the configuration, joined; nil if there is none.
func (c Config) Validate() error { return c.ValidateAs("health: Config", "None") }

// ValidateAs is Validate for whoever calls the configuration, and [None] for its Jitter, by other names.
func (c Config) ValidateAs(name, none string) error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(name+format, args...)) }
	d := c.WithDefaults()
	if d.Interval < MinInterval || d.Interval > MaxInterval {
		add(".Interval is %v, want 0 or %v to %v", c.Interval, MinInterval, MaxInterval)
		d.Interval = min(max(d.Interval, MinInterval), MaxInterval) // what bounds the others
	}
	if c.Timeout < 0 || c.Timeout > d.Interval {
		add(".Timeout is %v, want 0 or more, at most Interval, which is %v", c.Timeout, d.Interval)
	}
	if c.Jitter != None && !(c.Jitter >= 0 && c.Jitter <= 1) { // a NaN is in no range
		add(".Jitter is %v, want 0 to 1 or %s", c.Jitter, none)
	}
	if c.Rise < 0 || c.Rise > MaxThreshold {
		add(".Rise is %d, want 0 to %d", c.Rise, MaxThreshold)
	}
	if c.Fall < 0 || c.Fall > MaxThreshold {
		add(".Fall is %d, want 0 to %d", c.Fall, MaxThreshold)
	}
	if c.NoTraffic != 0 && (c.NoTraffic < d.Interval || c.NoTraffic > MaxInterval) {
		add(".NoTraffic is %v, want 0 or Interval, which is %v, to %v", c.NoTraffic, d.Interval, MaxInterval)
	}
	return errors.Join(problems...)
}

// WithDefaults returns c with its zeros, and None, replaced by what they stand for.
func (c Config) WithDefaults() Config {
	if c.Interval == 0 {
		c.Interval = defaultInterval
	}
	if c.Timeout == 0 {
		c.Timeout = min(defaultTimeout, c.Interval)
	}
	switch c.Jitter {
	case 0:
		c.Jitter = defaultJitter
	case None:
		c.Jitter = 0
	}
	if c.Rise == 0 {
		c.Rise = defaultRise
	}
	if c.Fall == 0 {
		c.Fall = defaultFall
	}
	if c.NoTraffic == 0 {
		c.NoTraffic = max(defaultNoTraffic, c.Interval)
	}
	return c
}

// leastSpacing is the least time from one check to the next, whatever the jitter: with a
// jitter of 1 it might be none.
const leastSpacing = int64(time.Millisecond)

// spread returns d with a jitter of up to that share of it, to both sides: random decides.
func spread(d time.Duration, jitter float64, random uint64) int64 {
	u := float64(random>>11) / (1 << 53) // 0 ≤ u < 1
	return max(int64(math.Round(float64(d)*(1+(2*u-1)*jitter))), leastSpacing)
}
