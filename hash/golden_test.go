package hash

import (
	"fmt"
	"strconv"
	"testing"
)

// goldenCase is a table and where it has some keys. Whatever changes a value moves keys of
// running clients, and needs a new number in the fingerprint and a new major version.
type goldenCase struct {
	Table       string
	Size        int // slots of a Maglev table
	Points      int // points of a ring for a weight of 1
	Seed        uint64
	IDs         []string
	Weights     []float64
	Fingerprint string            // hexadecimal
	Checksum    string            // of the first three candidates of many keys, see candidatesSum
	Owners      map[string]string // of keys that are text, by Sum or KetamaSum
	Numbers     map[string]string // of keys that are hashes, in decimal
}

// goldenTable builds the table of a case.
func goldenTable(t *testing.T, c goldenCase) (keyTable, []Endpoint) {
	t.Helper()
	list := make([]Endpoint, len(c.IDs))
	for i, id := range c.IDs {
		list[i] = Endpoint{ID: id, Weight: c.Weights[i]}
	}
	switch c.Table {
	case "maglev":
		return newTestMaglev(t, list, MaglevConfig{Size: c.Size, Seed: c.Seed}), list
	case "ring", "ketama":
		return newTestRing(t, list, RingConfig{Points: c.Points, Seed: c.Seed, Ketama: c.Table == "ketama"}), list
	}
	t.Fatalf("no such table: %q", c.Table)
	return nil, nil
}

// candidatesSum hashes the first three candidates of 4,096 keys.
func candidatesSum(table keyTable) string {
	var data []byte
	for key := range uint64(4096) {
		for _, i := range table.AppendN(nil, mix64(key), 3) {
			data = append(data, byte(i), byte(i>>8))
		}
	}
	return fmt.Sprintf("%016x", SumBytes(data))
}

// The values are the same in every process and on every architecture: run them with
// GOARCH=386 as well.
func TestGoldenOwners(t *testing.T) {
	var cases []goldenCase
	readJSON(t, "golden.json", &cases)
	if len(cases) < 6 {
		t.Fatalf("%d cases, want more", len(cases))
	}
	for i, c := range cases {
		table, list := goldenTable(t, c)
		if got := fmt.Sprintf("%016x", table.Fingerprint()); got != c.Fingerprint {
			t.Errorf("case %d, %s: the fingerprint is %s, want %s", i, c.Table, got, c.Fingerprint)
		}
		if got := candidatesSum(table); got != c.Checksum {
			t.Errorf("case %d, %s: the candidates have checksum %s, want %s", i, c.Table, got, c.Checksum)
		}
		sum := Sum
		if c.Table == "ketama" {
			sum = KetamaSum
		}
		for key, want := range c.Owners {
			if got := list[table.Lookup(sum(key))].ID; got != want {
				t.Errorf("case %d, %s: %q belongs to %s, want %s", i, c.Table, key, got, want)
			}
		}
		for number, want := range c.Numbers {
			key, err := strconv.ParseUint(number, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if got := list[table.Lookup(key)].ID; got != want {
				t.Errorf("case %d, %s: %s belongs to %s, want %s", i, c.Table, number, got, want)
			}
		}
	}
}
