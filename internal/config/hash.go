package config

import (
	"encoding/json"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// hashForm is the form of a picker.Hash with this table. Tables are policies of their own here, as
// they are for Envoy and gRPC.
func hashForm(name string, table picker.HashTable) form[evenkeel.Policy] {
	parameters := []field[picker.Hash]{
		integer("size", func(h *picker.Hash) *int { return &h.Size }),
		integer("points", func(h *picker.Hash) *int { return &h.Points }),
		unsigned("seed", func(h *picker.Hash) *uint64 { return &h.Seed }),
		number("load_factor", func(h *picker.Hash) *float64 { return &h.LoadFactor }),
		integer("min_capacity", func(h *picker.Hash) *int { return &h.MinCapacity }),
		boolean("unbounded", func(h *picker.Hash) *bool { return &h.Unbounded }),
		policyField("fallback", func(h *picker.Hash) *evenkeel.Policy { return &h.Fallback }),
		integer("sticky_keys", func(h *picker.Hash) *int { return &h.StickyKeys }),
		duration("sticky_ttl", func(h *picker.Hash) *time.Duration { return &h.StickyTTL }),
	}
	return form[evenkeel.Policy]{
		name: name,
		read: func(d *decoder, at string, raw json.RawMessage) evenkeel.Policy {
			h := picker.Hash{Table: table}
			readObject(d, at, raw, parameters, &h)
			return h
		},
		write: func(p evenkeel.Policy) (map[string]any, bool, error) {
			h, ok := p.(picker.Hash)
			if !ok || h.Table != table {
				return nil, false, nil
			}
			members, err := writeObject(parameters, &h)
			return members, true, err
		},
	}
}
