package config

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel"
)

// healthProtocols are the names of the kinds of health checks; "tcp" is the zero value.
var healthProtocols = []named[evenkeel.HealthProtocol]{
	{evenkeel.CheckTCP.String(), evenkeel.CheckTCP},
	{evenkeel.CheckHTTP.String(), evenkeel.CheckHTTP},
	{evenkeel.CheckHTTPS.String(), evenkeel.CheckHTTPS},
	{evenkeel.CheckGRPC.String(), evenkeel.CheckGRPC},
}

// healthFields are the members of the object "health".
var healthFields = []field[evenkeel.HealthConfig]{
	enum("protocol", func(c *evenkeel.HealthConfig) *evenkeel.HealthProtocol { return &c.Protocol }, healthProtocols),
	count("port", func(c *evenkeel.HealthConfig) *int { return &c.Port }),
	text("path", func(c *evenkeel.HealthConfig) *string { return &c.Path }),
	text("host", func(c *evenkeel.HealthConfig) *string { return &c.Host }),
	list("headers", `[{"name": "x-check", "value": "1"}]`, func(c *evenkeel.HealthConfig) *[]evenkeel.HeaderField { return &c.Headers }, headerFields),
	list("expect", `[{"from": 200, "to": 299}]`, func(c *evenkeel.HealthConfig) *[]evenkeel.StatusRange { return &c.Expect }, statusFields),
	text("service", func(c *evenkeel.HealthConfig) *string { return &c.Service }),
	boolean("skip_verify", func(c *evenkeel.HealthConfig) *bool { return &c.SkipVerify }),
	span("interval", func(c *evenkeel.HealthConfig) *time.Duration { return &c.Interval }),
	span("timeout", func(c *evenkeel.HealthConfig) *time.Duration { return &c.Timeout }),
	factor("jitter", func(c *evenkeel.HealthConfig) *float64 { return &c.Jitter }),
	count("rise", func(c *evenkeel.HealthConfig) *int { return &c.Rise }),
	count("fall", func(c *evenkeel.HealthConfig) *int { return &c.Fall }),
	boolean("unexpected_at_once", func(c *evenkeel.HealthConfig) *bool { return &c.UnexpectedAtOnce }),
	span("no_traffic", func(c *evenkeel.HealthConfig) *time.Duration { return &c.NoTraffic }),
	boolean("use_unchecked", func(c *evenkeel.HealthConfig) *bool { return &c.UseUnchecked }),
}

var headerFields = []field[evenkeel.HeaderField]{
	text("name", func(h *evenkeel.HeaderField) *string { return &h.Name }),
	text("value", func(h *evenkeel.HeaderField) *string { return &h.Value }),
}

var statusFields = []field[evenkeel.StatusRange]{
	integer("from", func(s *evenkeel.StatusRange) *int { return &s.From }),
	count("to", func(s *evenkeel.StatusRange) *int { return &s.To }),
}

// list is a list of objects, such as the example.
func list[T, V any](name, example string, of func(*T) *[]V, fields []field[V]) field[T] {
	return field[T]{
		name: name,
		read: func(d *decoder, at string, raw json.RawMessage, into *T) {
			var all []json.RawMessage
			if json.Unmarshal(raw, &all) != nil {
				d.wrong(at, raw, "a list such as "+example)
				return
			}
			for i, one := range all {
				var v V
				path := fmt.Sprintf("%s[%d]", at, i)
				if isNull(one) {
					d.wrong(path, one, "an object")
				}
				readObject(d, path, one, fields, &v)
				*of(into) = append(*of(into), v)
			}
		},
		write: func(from *T) (any, error) {
			var all []any
			for _, v := range *of(from) {
				members, err := writeObject(fields, &v)
				if err != nil {
					return nil, err
				}
				all = append(all, members)
			}
			if len(all) == 0 {
				return nil, nil
			}
			return all, nil
		},
	}
}
