package config

import (
	"reflect"
	"testing"
)

// FuzzParse expects of any text that reading it ends without a panic, and that what was read is the
// same after it has been written and read again: gRPC's parents of a policy do that.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", "[]", "0", `"p2c"`, "{", "\xff", "{}{}",
		`{"policy": "round_robin"}`,
		`{"policy": {"p2c": {"signal": "latency"}}}`,
		`{"policy": {"p2c": {"signal": "in_flight"}}, "strict": true}`,
		`{"policy": {"p2c": {"signal": 1.0}}}`,
		`{"policy": {"p2c": {}, "random": null}}`,
		`{"policy": {"": null}, "policy": null}`,
		`{"Policy": 1, "strict": false, "\u0000\ud800": {"[": "]\\\""}}`,
		`{"strict": true, "polcy": "random"}`,
		`{"keys": [{"header": "x-user"}, {"cookie": "c"}, {"query": "\ud800"}, {"path": true}, {"context": true}]}`,
		`{"requestHashHeader": "x-user", "keys": [null, {}, 1, {"header": ""}]}`,
		`{"subset": {"size": 12, "client_index": 0, "client_count": 3, "seed": "18446744073709551615", "min_available": -1}}`,
		`{"subset": {"algorithm": "rendezvous", "max_size": 1e2, "load_per_endpoint": 0.5, "client_index_host": false}}`,
		`{"subset": {"client_index_env": "I", "client_index_host": true, "lot_size": 3}}`,
		`{"a": [[[[[[[[[[[[{}]]]]]]]]]]]]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, _, err := Parse(text)
		if err != nil {
			if c.Policy != nil || c.Keys != nil || c.Subset != nil {
				t.Errorf("Parse = %#v beside the error %v", c, err)
			}
			return
		}
		written, err := Marshal(c)
		if err != nil {
			t.Fatalf("Marshal(%#v): %v", c, err)
		}
		again, report, err := Parse(written)
		if err != nil || len(report.Unknown) != 0 || !reflect.DeepEqual(again, c) {
			t.Errorf("%#v does not survive: as %s it reads back as %#v, %v, %v", c, written, again, report, err)
		}
	})
}
