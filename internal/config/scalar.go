package config

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// named is one value of an enumeration and its name.
type named[V comparable] struct {
	name  string
	value V
}

// enum is a field with one of these values, written as its name.
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
			if have == zero {
				return nil, nil
			}
			for _, v := range values {
				if v.value == have {
					return v.name, nil
				}
			}
			return nil, fmt.Errorf("config: %s is %v, want the value of %s", name, have, oneOf(names))
		},
	}
}

// integer is a field with a whole number. Its bounds are for Validate to check.
func integer[T any](name string, of func(*T) *int) field[T] {
	return scalar(name, of, func(raw json.RawMessage) (int, bool) {
		n, err := strconv.ParseFloat(string(raw), 64)
		// Up to 2^53 a double holds each whole number; above, what arrives may not be what was meant.
		return int(n), err == nil && n == math.Trunc(n) && math.Abs(n) <= 1<<53 && float64(int(n)) == n
	}, "a whole number", func(n int) any { return n })
}

// number is a field with any number. Its bounds are for Validate to check.
func number[T any](name string, of func(*T) *float64) field[T] {
	return scalar(name, of, func(raw json.RawMessage) (float64, bool) {
		n, err := strconv.ParseFloat(string(raw), 64)
		return n, err == nil
	}, "a number", func(n float64) any { return n })
}

// optional is a field with a number for which absent and 0 differ.
func optional[T any](name string, of func(*T) **float64) field[T] {
	return field[T]{
		name: name,
		read: func(d *decoder, at string, raw json.RawMessage, into *T) {
			n, err := strconv.ParseFloat(string(raw), 64)
			if err != nil {
				d.wrong(at, raw, "a number")
				return
			}
			*of(into) = &n
		},
		write: func(from *T) (any, error) {
			if p := *of(from); p != nil {
				return *p, nil
			}
			return nil, nil
		},
	}
}

// boolean is a field that is true or false.
func boolean[T any](name string, of func(*T) *bool) field[T] {
	return scalar(name, of, func(raw json.RawMessage) (b, ok bool) {
		ok = json.Unmarshal(raw, &b) == nil
		return b, ok
	}, "true or false", func(b bool) any { return b })
}

// duration is a field with a length of time, written as in Go and in protobuf's JSON: "1.5s".
func duration[T any](name string, of func(*T) *time.Duration) field[T] {
	return scalar(name, of, func(raw json.RawMessage) (time.Duration, bool) {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return 0, false
		}
		d, err := time.ParseDuration(text)
		return d, err == nil
	}, `a duration such as "10s"`, func(d time.Duration) any { return d.String() })
}

// scalar is a field whose zero value is left out. parse is given valid JSON that is not null.
func scalar[T any, V comparable](name string, of func(*T) *V, parse func(json.RawMessage) (V, bool), want string, write func(V) any) field[T] {
	return field[T]{
		name: name,
		read: func(d *decoder, at string, raw json.RawMessage, into *T) {
			v, ok := parse(raw)
			if !ok {
				d.wrong(at, raw, want)
				return
			}
			*of(into) = v
		},
		write: func(from *T) (any, error) {
			var zero V
			if v := *of(from); v != zero {
				return write(v), nil
			}
			return nil, nil
		},
	}
}
