package picker

import (
	"fmt"

	"github.com/evenkeel/evenkeel/hash"
)

// keyTable is a table of one of the kinds. A sum of types rather than an interface: a lookup
// is then a direct call.
type keyTable struct {
	kind       HashTable // of the one that is not nil
	maglev     *hash.Maglev
	ring       *hash.Ring
	rendezvous *hash.Rendezvous
}

// lookup returns the owner of key.
func (t *keyTable) lookup(key uint64) int {
	switch t.kind {
	case Maglev:
		return t.maglev.Lookup(key)
	case Ring:
		return t.ring.Lookup(key)
	}
	return t.rendezvous.Lookup(key)
}

// walk returns a walk through the candidates of key.
func (t *keyTable) walk(key uint64) hash.Walk {
	switch t.kind {
	case Maglev:
		return t.maglev.Walk(key)
	case Ring:
		return t.ring.Walk(key)
	}
	return t.rendezvous.Walk(key)
}

// built reports whether there is a table at all. There is none over an empty list.
func (t *keyTable) built() bool { return t.maglev != nil || t.ring != nil || t.rendezvous != nil }

// newKeyTable builds the table that h wants over m, from what prev has of the same settings,
// or nil. fits is false if the list is too much for it; the table is then a Rendezvous.
func newKeyTable(h Hash, m *Members, prev *keyTable) (t keyTable, fits bool) {
	list := make([]hash.Endpoint, m.Len())
	for i, w := range m.weights {
		list[i] = hash.Endpoint{ID: m.endpoints[i].ID, Weight: w}
	}
	if len(list) == 0 {
		return keyTable{}, true
	}
	if prev == nil {
		prev = &keyTable{}
	}
	var err error
	t.kind = h.Table
	switch {
	case h.Table == Ring && prev.ring != nil:
		t.ring, err = prev.ring.Update(list)
	case h.Table == Ring:
		t.ring, err = hash.NewRing(list, hash.RingConfig{Points: h.Points, Seed: h.Seed})
	case h.Table == Maglev && prev.maglev != nil:
		t.maglev, err = prev.maglev.Update(list)
	case h.Table == Maglev:
		t.maglev, err = hash.NewMaglev(list, hash.MaglevConfig{Size: h.Size, Seed: h.Seed})
	}
	if h.Table <= Ring && err == nil {
		return t, true
	}
	return keyTable{kind: Rendezvous, rendezvous: newRendezvousTable(h, list, prev.rendezvous)}, h.Table > Ring
}

// newRendezvousTable returns a table that any list fits in.
func newRendezvousTable(h Hash, list []hash.Endpoint, prev *hash.Rendezvous) *hash.Rendezvous {
	if prev != nil {
		if t, err := prev.Update(list); err == nil {
			return t
		}
	}
	t, err := hash.NewRendezvous(list, hash.RendezvousConfig{Seed: h.Seed})
	if err != nil {
		// Members are valid by the same rules, and not all drained.
		return &hash.Rendezvous{}
	}
	return t
}

// HashStats describes what keys are looked up in. Who has no [Snapshot] gets Fingerprint and Stats
// from a table of package hash with the same settings, IDs and weights.
type HashStats struct {
	// Table is the kind of table in use: Rendezvous while the list does not fit in the one
	// that was asked for.
	Table HashTable
	// Misfits is how many lists did not fit in it, since the pool has had these settings.
	Misfits uint64
	// Fingerprint identifies what keys map to: clients in which it is equal agree on every key.
	// It may differ where they agree, as when one has all weights twice as high.
	Fingerprint uint64
	// Stats describes the table.
	hash.Stats
}

// String returns the description in one line.
func (s HashStats) String() string {
	return fmt.Sprintf("%v of %d endpoints, %d slots, shares %.3f to %.3f, %d bytes, fingerprint %#x, %d misfits",
		s.Table, s.Endpoints, s.Slots, s.MinShare, s.MaxShare, s.Bytes, s.Fingerprint, s.Misfits)
}

// HashStats describes the table of a snapshot whose policy is a [Hash]; ok is false under
// another one, and over an empty list. It looks at the whole table.
func (s *Snapshot) HashStats() (stats HashStats, ok bool) {
	p, ok := s.picker.(*hashed)
	if !ok || !p.table.built() {
		return HashStats{}, false
	}
	stats = HashStats{Table: p.table.kind, Misfits: p.misfits}
	switch t := &p.table; t.kind {
	case Maglev:
		stats.Fingerprint, stats.Stats = t.maglev.Fingerprint(), t.maglev.Stats()
	case Ring:
		stats.Fingerprint, stats.Stats = t.ring.Fingerprint(), t.ring.Stats()
	default:
		stats.Fingerprint, stats.Stats = t.rendezvous.Fingerprint(), t.rendezvous.Stats()
	}
	return stats, true
}
