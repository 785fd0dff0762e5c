package main

import "github.com/evenkeel/evenkeel/picker"

// modulo is what one writes first: the key's hash, modulo the number of caches. It spreads
// keys evenly, and gives nearly all of them another cache when there is one more.
type modulo struct{}

// Validate implements picker.Policy.
func (modulo) Validate() error { return nil }

// Needs implements picker.Policy: it learns nothing from results.
func (modulo) Needs() picker.Need { return 0 }

// UsesKey implements evenkeel.KeyUser, so that the Transport looks for keys.
func (modulo) UsesKey() bool { return true }

// Build implements picker.Policy.
func (m modulo) Build(*picker.Members, picker.Picker) picker.Picker { return m }

// Pick implements picker.Picker.
func (modulo) Pick(s *picker.Snapshot, r picker.Request, _ int64) int {
	key := r.Key
	if !r.HasKey {
		key = s.Uint64()
	}
	return s.At(int(key % uint64(s.Len())))
}
