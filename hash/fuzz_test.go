package hash

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

// fuzzList reads a list from bytes: five for an endpoint, with any weight and few IDs.
func fuzzList(data []byte) []Endpoint {
	var list []Endpoint
	for ; len(data) >= 5 && len(list) < 40; data = data[5:] {
		weight := float64(math.Float32frombits(binary.LittleEndian.Uint32(data[1:])))
		if data[0] >= 64 { // three of four are weights that may be valid
			weight = float64(binary.LittleEndian.Uint16(data[1:])) / float64(1+data[3]%8)
		}
		list = append(list, Endpoint{ID: string('a' + rune(data[0]%64)), Weight: weight})
	}
	return list
}

// checkTable fails unless every candidate comes once, the owner first.
func checkTable(t *testing.T, table keyTable, list []Endpoint, merged bool, key uint64) {
	t.Helper()
	got := slices.Collect(table.Candidates(key))
	if len(got) != table.Stats().Endpoints || got[0] != table.Lookup(key) {
		t.Fatalf("candidates %v for owner %d of %d endpoints", got, table.Lookup(key), table.Stats().Endpoints)
	}
	slices.Sort(got)
	for k, i := range got {
		if i < 0 || i >= len(list) || !merged && list[i].Weight == 0 || k > 0 && i == got[k-1] {
			t.Fatalf("candidates %v of %v", got, list)
		}
	}
}

func FuzzMaglev(f *testing.F) {
	f.Add([]byte("aaaaabbbbbccccc"), uint64(1), false, 0)
	f.Add([]byte("\x80\x01\x00\x00\x00\x81\x02\x00\x00\x00\x82\xff\xff\x00\x00"), uint64(2), true, 251)
	f.Add([]byte("\x80\x00\x00\x00\x00"), uint64(3), false, 257)
	f.Add([]byte("\x00\x00\x00\xc0\x7f\x01\x00\x00\x80\xff"), uint64(4), true, 250)
	f.Fuzz(func(t *testing.T, data []byte, key uint64, merge bool, size int) {
		if size > 2000 {
			size = 1009
		}
		list := fuzzList(data)
		c := MaglevConfig{Size: size, Seed: key >> 60, MergeDuplicates: merge}
		m, err := NewMaglev(list, c)
		if err != nil {
			return
		}
		checkTable(t, m, list, merge, key)
		sum := uint64(0)
		for _, q := range m.quotas {
			if q == 0 {
				t.Fatalf("an endpoint without a slot: %v", m.quotas)
			}
			sum += uint64(q)
		}
		if sum != m.size {
			t.Fatalf("the quotas %v add up to %d of %d", m.quotas, sum, m.size)
		}
		slices.Reverse(list)
		if other := newTestMaglev(t, list, c); other.Fingerprint() != m.Fingerprint() || other.list.ids[0] != m.list.ids[0] {
			t.Fatal("the reverse list gives another table")
		}
	})
}

func FuzzRing(f *testing.F) {
	f.Add([]byte("aaaaabbbbbccccc"), []byte("aaaaabbbbb"), uint64(1), false, 0)
	f.Add([]byte("\x80\x01\x00\x00\x00\x81\x02\x00\x00\x00"), []byte("\x81\x02\x00\x00\x00"), uint64(2), true, 7)
	f.Add([]byte("\x80\x01\x00\x00\x00"), []byte("\x80\x02\x00\x00\x00\x81\x02\x00\x00\x00"), uint64(1<<63), false, 8)
	f.Fuzz(func(t *testing.T, data, next []byte, key uint64, merge bool, points int) {
		if points > 64 {
			points = 64
		}
		c := RingConfig{Points: points, MaxPoints: 1 << 18, MergeDuplicates: merge, Ketama: key>>63 == 1}
		list := fuzzList(data)
		ring, err := NewRing(list, c)
		if err != nil {
			return
		}
		checkTable(t, ring, list, merge, key)
		list = fuzzList(next)
		updated, err := ring.Update(list)
		want, wantErr := NewRing(list, c)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("the update says %v, a build %v", err, wantErr)
		}
		if err != nil {
			return
		}
		sameRing(t, updated, want)
		checkTable(t, updated, list, merge, key)
	})
}
