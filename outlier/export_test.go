package outlier

// Left is how many members that left are remembered for their slow start.
func (d *Detector) Left() int { return len(d.left) }
