package config

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// named is one value of an enumeration and its name.
type named[V comparable] struct {
	name  string
	value V
}

// enum is a field with one of these values, written as its name. Values of an interface type must be
// comparable; what a user puts into the field need not be, since it is of another type.
func enum[T any, V comparable](name string, of func(*T) *V, values []named[V]) field[T] {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = v.name
	}
	return field[T]{
		name: name,
		read: func(d *decoder, at string, raw json.RawMessage, into *T) {
			var got string
			if json.Unmarshal(raw, &got) != nil {
				d.wrong(at, raw, oneOf(names))
				return
			}
			for _, v := range values {
				if v.name == got {
					*of(into) = v.value
					return
				}
			}
			d.wrong(at, raw, suggest(got, names))
		},
		write: func(from *T) (any, error) {
			var zero V
			have := *of(from)
			for _, v := range values {
				switch have {
				case zero:
					return nil, nil
				case v.value:
					return v.name, nil
				}
			}
			return nil, fmt.Errorf("config: %s is a %T, want the value of %s", name, have, oneOf(names))
		},
	}
}

// integer is a field with a whole number. Its bounds are for the policy's Validate to check.
func integer[T any](name string, of func(*T) *int) field[T] {
	return field[T]{
		name: name,
		read: func(d *decoder, at string, raw json.RawMessage, into *T) {
			n, err := strconv.ParseFloat(string(raw), 64)
			// Up to 2^53 a double holds each whole number; above, what arrives may not be what was meant.
			if err != nil || n != math.Trunc(n) || math.Abs(n) > 1<<53 || float64(int(n)) != n {
				d.wrong(at, raw, "a whole number")
				return
			}
			*of(into) = int(n)
		},
		write: func(from *T) (any, error) {
			if n := *of(from); n != 0 {
				return n, nil
			}
			return nil, nil
		},
	}
}
