package config

import (
	"encoding/json"
	"strconv"
)

// unsigned is a field with a whole number of 64 bits. Those from 2^53 are written as a string, as in
// protobuf's JSON: whoever reads numbers as doubles would change them, 2^53+1 to 2^53. Either form is
// read, but no number that may have been changed.
func unsigned[T any](name string, of func(*T) *uint64) field[T] {
	return scalar(name, of, func(raw json.RawMessage) (uint64, bool) {
		text := string(raw)
		if json.Unmarshal(raw, &text) == nil {
			n, err := strconv.ParseUint(text, 10, 64)
			return n, err == nil
		}
		if n, err := strconv.ParseUint(text, 10, 53); err == nil {
			return n, true
		}
		// What has been through a double may be written with an exponent.
		f, err := strconv.ParseFloat(text, 64)
		return uint64(f), err == nil && f >= 0 && f < 1<<53 && f == float64(uint64(f))
	}, "a whole number from 0, as a string from 2^53", func(n uint64) any {
		if n < 1<<53 {
			return n
		}
		return strconv.FormatUint(n, 10)
	})
}
