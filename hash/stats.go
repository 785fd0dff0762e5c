package hash

// Stats describes a table: how large it is and how evenly it divides the keys.
type Stats struct {
	// Endpoints is the number of endpoints with a positive weight.
	Endpoints int
	// Slots is the number of entries of a Maglev table or of points of a ring, 0 for
	// structures that have none.
	Slots int
	// MinShare and MaxShare are the least and the greatest share of all possible keys that
	// an endpoint gets, relative to its share of the weight: 1 and 1 when every endpoint
	// gets exactly what its weight says. They are computed from the table, without
	// sampling, and say nothing about how often each key is asked for.
	MinShare, MaxShare float64
	// Bytes is the memory that the table holds, the text of the IDs aside.
	Bytes int
}

// shareRange returns the least and greatest of part/whole relative to weight/sum of weights.
func (l *list) shareRange(parts []uint64) (least, most float64) {
	var whole, sum float64
	for i, p := range parts {
		whole += float64(p)
		sum += float64(l.weights[i])
	}
	for i, p := range parts {
		r := float64(p) / whole * sum / float64(l.weights[i])
		if i == 0 || r < least {
			least = r
		}
		most = max(most, r)
	}
	return least, most
}
