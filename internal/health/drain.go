package health

import "math"

// Departure is the end of one endpoint: it gets nothing new, and is closed when its last request
// has ended or its time is up. It is a value; the zero Departure has not begun.
type Departure struct {
	deadline int64
	begun    bool
}

// Begin begins it at instant now, for at most limit nanoseconds; 0 or less means without a
// limit. A second Begin changes the limit, not the beginning of what is gone.
func (d *Departure) Begin(now, limit int64) {
	d.begun, d.deadline = true, math.MaxInt64
	if limit > 0 && limit < math.MaxInt64-max(now, 0) {
		d.deadline = now + limit
	}
}

// Over reports whether the endpoint is to be closed at instant now, with that many requests
// in flight.
func (d *Departure) Over(now, inFlight int64) bool {
	return d.begun && (inFlight <= 0 || now >= d.deadline)
}

// Next returns when Over may become true by time alone, math.MaxInt64 if never.
func (d *Departure) Next() int64 {
	if !d.begun {
		return math.MaxInt64
	}
	return d.deadline
}
