package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/subset"
)

const (
	// maxSize is far above any config and far below what would cost a client anything to read.
	maxSize = 64 << 10
	// maxDepth leaves room for sections that a later version may add.
	maxDepth = 64
)

// Report says what of the input had no effect.
type Report struct {
	// Unknown holds the dotted path of each field that is not known, such as
	// "policy.p2c.singal", sorted at each level. It is filled even where they are refused.
	Unknown []string
}

// configFields are the members of the outermost object. "strict" is about the reading alone, so that
// it is never written.
var configFields = []field[evenkeel.Config]{
	policyField("policy", func(c *evenkeel.Config) *evenkeel.Policy { return &c.Policy }),
	keysField("keys", func(c *evenkeel.Config) *[]evenkeel.Key { return &c.Keys }),
	// Members are read in the order of their names: after "keys", which must not be there too.
	headerField("requestHashHeader", "keys", func(c *evenkeel.Config) *[]evenkeel.Key { return &c.Keys }),
	subsetField("subset", func(c *evenkeel.Config) **subset.Config { return &c.Subset }),
	switched("outlier", func(c *evenkeel.Config) **outlier.Config { return &c.Outlier }, outlierFields),
	switched("health", func(c *evenkeel.Config) **evenkeel.HealthConfig { return &c.Health }, healthFields),
	switched("slow_start", func(c *evenkeel.Config) **evenkeel.SlowStart { return &c.SlowStart }, slowStartFields),
	duration("drain_timeout", func(c *evenkeel.Config) *time.Duration { return &c.DrainTimeout }),
	part("limit", func(c *evenkeel.Config) *evenkeel.LimitConfig { return &c.Limit }, limitFields),
	switched("reports", func(c *evenkeel.Config) **evenkeel.ReportsConfig { return &c.Reports }, reportsFields),
	{
		name: "strict",
		read: func(d *decoder, at string, raw json.RawMessage, _ *evenkeel.Config) {
			if json.Unmarshal(raw, &d.strict) != nil {
				d.wrong(at, raw, "true or false")
			}
		},
		write: func(*evenkeel.Config) (any, error) { return nil, nil },
	},
}

// Parse reads a config. On an error, which joins all problems, the config is the zero one.
func Parse(data []byte) (evenkeel.Config, Report, error) {
	if len(data) > maxSize {
		return evenkeel.Config{}, Report{}, fmt.Errorf("config: the text has %d bytes, want at most %d", len(data), maxSize)
	}
	data = bytes.Trim(data, " \t\r\n")
	if len(data) == 0 {
		return evenkeel.Config{}, Report{}, nil
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return evenkeel.Config{}, Report{}, fmt.Errorf("config: the text is no JSON: %w", err)
	}
	if n := depth(whole); n > maxDepth {
		return evenkeel.Config{}, Report{}, fmt.Errorf("config: the text nests %d deep, want at most %d", n, maxDepth)
	}

	var (
		c evenkeel.Config
		d decoder
	)
	readObject(&d, "", whole, configFields, &c)
	report, err := d.result()
	if err = errors.Join(err, c.Validate()); err != nil {
		return evenkeel.Config{}, report, err
	}
	return c, report, nil
}

// Marshal writes a config in the form that [Parse] reads, without what has its zero value. The
// config is validated first. A policy that is not one of the module's own has no JSON form.
func Marshal(c evenkeel.Config) ([]byte, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	members, err := writeObject(configFields, &c)
	if err != nil {
		return nil, err
	}
	return json.Marshal(members)
}

// depth returns how deep valid JSON nests. The decoder looks again at what is inside for each level
// that it knows, and encoding/json alone would let 10,000 levels pass.
func depth(valid []byte) (deepest int) {
	level, inString := 0, false
	for i := 0; i < len(valid); i++ {
		switch b := valid[i]; {
		case inString && b == '\\':
			i++
		case b == '"':
			inString = !inString
		case inString:
		case b == '{', b == '[':
			level++
			deepest = max(deepest, level)
		case b == '}', b == ']':
			level--
		}
	}
	return deepest
}
