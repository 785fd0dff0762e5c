package config

import (
	"encoding/json"
	"fmt"

	"github.com/evenkeel/evenkeel"
)

// keyFields are the members of one object in "keys".
var keyFields = []field[evenkeel.Key]{
	text("header", func(k *evenkeel.Key) *string { return &k.Header }),
	text("cookie", func(k *evenkeel.Key) *string { return &k.Cookie }),
	text("query", func(k *evenkeel.Key) *string { return &k.Query }),
	boolean("path", func(k *evenkeel.Key) *bool { return &k.Path }),
	boolean("context", func(k *evenkeel.Key) *bool { return &k.Context }),
}

// keysField is a list of keys, each an object.
func keysField[T any](name string, of func(*T) *[]evenkeel.Key) field[T] {
	return field[T]{
		name: name,
		read: func(d *decoder, at string, raw json.RawMessage, into *T) {
			var list []json.RawMessage
			if json.Unmarshal(raw, &list) != nil {
				d.wrong(at, raw, `a list such as [{"header": "x-user"}]`)
				return
			}
			for i, one := range list {
				*of(into) = append(*of(into), readKey(d, fmt.Sprintf("%s[%d]", at, i), one))
			}
		},
		write: func(from *T) (any, error) {
			var list []any
			for _, k := range *of(from) {
				members, err := writeObject(keyFields, &k)
				if err != nil {
					return nil, err
				}
				list = append(list, members)
			}
			if len(list) == 0 {
				return nil, nil
			}
			return list, nil
		},
	}
}

// readKey returns the key that raw describes. One that cannot be read has a valid name of
// its own: it has been reported, and Validate has still to count it for the others' sake.
func readKey(d *decoder, at string, raw json.RawMessage) (k evenkeel.Key) {
	before := len(d.problems)
	if isNull(raw) {
		d.wrong(at, raw, "an object")
	}
	readObject(d, at, raw, keyFields, &k)
	if len(d.problems) > before {
		return evenkeel.Key{Query: at}
	}
	return k
}

// headerField is one header as the whole list of keys: gRFC A76's name and form of it, for
// configs that come from ring_hash. It is written as the list.
func headerField[T any](name, list string, of func(*T) *[]evenkeel.Key) field[T] {
	return field[T]{
		name: name,
		read: func(d *decoder, at string, raw json.RawMessage, into *T) {
			var header string
			switch {
			case json.Unmarshal(raw, &header) != nil:
				d.wrong(at, raw, "a string")
			case header == "": // as absent, in proto3
			case len(*of(into)) > 0:
				d.wrong(at, raw, "none beside "+list)
			default:
				*of(into) = []evenkeel.Key{{Header: header}}
			}
		},
		write: func(*T) (any, error) { return nil, nil },
	}
}

// text is a field with a string.
func text[T any](name string, of func(*T) *string) field[T] {
	return scalar(name, of, func(raw json.RawMessage) (s string, ok bool) {
		ok = json.Unmarshal(raw, &s) == nil
		return s, ok
	}, "a string", func(s string) any { return s })
}
