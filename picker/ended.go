package picker

// Ended returns how many requests have ended since the last call, streams and those on endpoints that
// left the list included: so that whoever counts results need not count those that are as usual.
// It costs O(n).
func (g *Registry) Ended() (n uint64) {
	for _, r := range g.records {
		ended := r.ended()
		n += ended - r.toldEnded
		r.toldEnded = ended
	}
	return n
}
