package limit

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// None means none at all as the value of a number in [BudgetConfig], where 0 means the
// default.
const None = -1

// Bounds of [BudgetConfig].
const (
	MaxPercent   = 1000
	MaxPerSecond = 1e6
	MaxAtOnce    = 1 << 20
	MinWindow    = time.Second
	MaxWindow    = 10 * time.Minute
)

// BudgetConfig says how many attempts beyond the first a [Budget] grants, retries and
// hedges together. The zero BudgetConfig is the documented default. Numbers keep three
// decimals.
type BudgetConfig struct {
	// Disabled grants everything.
	Disabled bool
	// Percent of the requests of the last Window may be repeated. 0 means 20, [None] none;
	// at most [MaxPercent].
	Percent float64
	// PerSecond may be repeated on top, so that a client with few requests has any.
	// 0 means 10, [None] none; at most [MaxPerSecond].
	PerSecond float64
	// Window is how long a request or a repetition counts, in ten slices: it stops to count
	// up to a tenth early. 0 means 10 s; otherwise [MinWindow] to [MaxWindow].
	Window time.Duration
	// InFlightPercent of the requests in flight may be repetitions. 0 means 20, [None]
	// none; at most [MaxPercent].
	InFlightPercent float64
	// AtOnce repetitions may be in flight in any case. 0 means 3, [None] none; at most
	// [MaxAtOnce].
	AtOnce int
}

// Validate reports every problem of the configuration, joined; nil if there is none.
func (c BudgetConfig) Validate() error {
	var problems []error
	number := func(field string, v, most float64) {
		// A NaN is in no range.
		if v != None && !(v >= 0 && v <= most) {
			problems = append(problems, fmt.Errorf("limit: BudgetConfig.%s is %v, want 0 to %v or None", field, v, most))
		}
	}
	number("Percent", c.Percent, MaxPercent)
	number("PerSecond", c.PerSecond, MaxPerSecond)
	if c.Window != 0 && (c.Window < MinWindow || c.Window > MaxWindow) {
		problems = append(problems, fmt.Errorf("limit: BudgetConfig.Window is %v, want 0 or %v to %v", c.Window, MinWindow, MaxWindow))
	}
	number("InFlightPercent", c.InFlightPercent, MaxPercent)
	if c.AtOnce != None && (c.AtOnce < 0 || c.AtOnce > MaxAtOnce) {
		problems = append(problems, fmt.Errorf("limit: BudgetConfig.AtOnce is %d, want 0 to %d or None", c.AtOnce, MaxAtOnce))
	}
	return errors.Join(problems...)
}

// milli is one grant, or one of anything, in the units of a Budget's arithmetic: integers,
// since in whole numbers 75 % is 100 %, and sums of floats drift.
const milli = 1000

// terms are a BudgetConfig's numbers, defaults filled in, in thousandths.
type terms struct {
	disabled bool
	ledger   *ledger // what they are applied to
	deposit  int64   // for each request
	reserve  int64   // in a window, whatever the requests
	inFlight int64   // for each request in flight
	atOnce   int64
}

// window returns Window with the default filled in.
func (c BudgetConfig) window() time.Duration {
	if c.Window == 0 {
		return 10 * time.Second
	}
	return c.Window
}

func (c BudgetConfig) terms(l *ledger) *terms {
	return &terms{
		disabled: c.Disabled,
		ledger:   l,
		deposit:  thousandths(c.Percent/100, 0.2),
		reserve:  int64(math.Round(float64(thousandths(c.PerSecond, 10)) * c.window().Seconds())),
		inFlight: thousandths(c.InFlightPercent/100, 0.2),
		atOnce:   thousandths(float64(c.AtOnce), 3),
	}
}

// thousandths returns 1000 v, or that of the default if v is 0, and nothing if it is
// negative, as a part of None is.
func thousandths(v, otherwise float64) int64 {
	if v == 0 {
		v = otherwise
	}
	return int64(math.Round(max(v, 0) * milli))
}
