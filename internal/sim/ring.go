package sim

// ring is a first-in, first-out queue that grows and never shrinks. The zero ring is
// empty.
type ring[T any] struct {
	items []T // its length is a power of two
	head  int
	n     int
}

func (q *ring[T]) push(v T) {
	if q.n == len(q.items) {
		q.grow()
	}
	q.items[(q.head+q.n)&(len(q.items)-1)] = v
	q.n++
}

func (q *ring[T]) grow() {
	items := make([]T, max(2*len(q.items), 4))
	for i := range q.n {
		items[i] = q.items[(q.head+i)&(len(q.items)-1)]
	}
	q.items, q.head = items, 0
}

// first returns the first item. The ring must not be empty.
func (q *ring[T]) first() T { return q.items[q.head] }

// pop removes and returns the first item. The ring must not be empty.
func (q *ring[T]) pop() T {
	v := q.items[q.head]
	q.head = (q.head + 1) & (len(q.items) - 1)
	q.n--
	return v
}

// timed is something that happens to a request at an instant. Rings of it hold what
// always takes equally long and so happens in the order in which it began: no
// heap is needed.
type timed struct {
	at   int64
	slot int32
	tag  uint32
}
