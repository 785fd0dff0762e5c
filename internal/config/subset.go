package config

import (
	"encoding/json"

	"github.com/evenkeel/evenkeel/subset"
)

// algorithms are the names of the ways of choosing a subset; "auto" is the zero value.
var algorithms = []named[subset.Algorithm]{
	{subset.Auto.String(), subset.Auto},
	{subset.UseRendezvous.String(), subset.UseRendezvous},
	{subset.UseDeal.String(), subset.UseDeal},
	{subset.UseRocksteadier.String(), subset.UseRocksteadier},
	{subset.UseAperture.String(), subset.UseAperture},
	{subset.UseDeterministic.String(), subset.UseDeterministic},
}

// subsetFields are the members of the object "subset".
var subsetFields = []field[subset.Config]{
	enum("algorithm", func(c *subset.Config) *subset.Algorithm { return &c.Algorithm }, algorithms),
	integer("size", func(c *subset.Config) *int { return &c.Size }),
	// Members are read in the order of their names, and at most one of these three may be there.
	indexField("client_index", subset.GivenIndex, integer("", self[int]),
		subset.IndexOf, func(x subset.Index) any { return x.Value }),
	indexField("client_index_env", subset.EnvironmentIndex, text("", self[string]),
		subset.IndexFromEnv, func(x subset.Index) any { return x.Variable }),
	indexField("client_index_host", subset.HostIndex, boolean("", self[bool]),
		indexFromHost, func(subset.Index) any { return true }),
	integer("client_count", func(c *subset.Config) *int { return &c.ClientCount }),
	unsigned("seed", func(c *subset.Config) *uint64 { return &c.Seed }),
	integer("min_available", func(c *subset.Config) *int { return &c.MinAvailable }),
	integer("lot_size", func(c *subset.Config) *int { return &c.LotSize }),
	integer("max_size", func(c *subset.Config) *int { return &c.MaxSize }),
	number("load_per_endpoint", func(c *subset.Config) *float64 { return &c.LoadPerEndpoint }),
}

// subsetField is an object that switches subsets on, even without members.
func subsetField[T any](name string, of func(*T) **subset.Config) field[T] {
	return field[T]{
		name: name,
		read: func(d *decoder, at string, raw json.RawMessage, into *T) {
			c := new(subset.Config)
			before := len(d.problems)
			readObject(d, at, raw, subsetFields, c)
			if len(d.problems) == before { // else Validate would find what follows from it
				*of(into) = c
			}
		},
		write: func(from *T) (any, error) {
			c := *of(from)
			if c == nil {
				return nil, nil
			}
			return writeObject(subsetFields, c)
		},
	}
}

// indexField is one source of a client's index: what value reads, made an index by of.
func indexField[V any](name string, source subset.IndexSource, value field[V], of func(V) subset.Index, to func(subset.Index) any) field[subset.Config] {
	return field[subset.Config]{
		name: name,
		read: func(d *decoder, at string, raw json.RawMessage, into *subset.Config) {
			var v V
			before := len(d.problems)
			value.read(d, at, raw, &v)
			index := of(v)
			switch {
			case len(d.problems) > before || index.Source == subset.NoIndex:
			case into.ClientIndex.Source != subset.NoIndex:
				d.wrong(at, raw, "none beside another index of the client")
			default:
				into.ClientIndex = index
			}
		},
		write: func(from *subset.Config) (any, error) {
			if from.ClientIndex.Source != source {
				return nil, nil
			}
			return to(from.ClientIndex), nil
		},
	}
}

func self[V any](v *V) *V { return v }

func indexFromHost(yes bool) subset.Index {
	if !yes {
		return subset.Index{}
	}
	return subset.IndexFromHost()
}
