package picker

// Part returns a snapshot for one of several users of the endpoints, of whom each reaches some of those
// that are available in s, the whole: available lists them as in [NewSnapshot], and p is a Picker of this user's own,
// built by the same policy for the same members. All choose by the same records, so that each sees what
// the others have in flight and have learnt.
//
// What the availability of an endpoint says of the endpoint itself goes by the whole: whether it was away and is
// back, and of what the mean load is one. So publish the whole first, and its parts anew whenever it changes.
// Sweep it first, too.
func (s *Snapshot) Part(available []int32, p Picker) *Snapshot {
	part := &Snapshot{records: s.records, members: s.members, picker: p, needs: s.needs, passes: overlooks(p),
		rand: s.rand, shared: s.shared, whole: s}
	part.take(available)
	return part
}
