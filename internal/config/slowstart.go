package config

import (
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
)

// slowStartFields are the members of the object "slow_start".
var slowStartFields = []field[evenkeel.SlowStart]{
	span("window", func(c *evenkeel.SlowStart) *time.Duration { return &c.Window }),
	factor("aggression", func(c *evenkeel.SlowStart) *float64 { return &c.Aggression }),
	percent("floor", func(c *evenkeel.SlowStart) *outlier.Percent { return &c.Floor }),
}
