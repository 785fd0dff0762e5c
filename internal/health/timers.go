package health

import "math"

// Timers is a queue of instants, at most one for each key: what falls due when. One serves
// a whole pool. Set, Remove and PopDue take O(log n), Next O(1). The zero Timers is empty
// and ready. It is not safe for concurrent use.
type Timers[K comparable] struct {
	heap []timer[K]
	at   map[K]int // where in the heap
	seq  uint64
}

// timer is ordered by instant, and by when it was set where these are the same.
type timer[K comparable] struct {
	at, seq uint64 // at with its sign bit turned, so that both compare as one
	key     K
}

func (a timer[K]) before(b timer[K]) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

const signBit = 1 << 63

// Len returns the number of keys.
func (t *Timers[K]) Len() int { return len(t.heap) }

// Next returns the earliest instant, math.MaxInt64 if there is none.
func (t *Timers[K]) Next() int64 {
	if len(t.heap) == 0 {
		return math.MaxInt64
	}
	return int64(t.heap[0].at ^ signBit)
}

// At returns the instant of a key; ok is false if it has none.
func (t *Timers[K]) At(key K) (at int64, ok bool) {
	i, ok := t.at[key]
	if !ok {
		return 0, false
	}
	return int64(t.heap[i].at ^ signBit), true
}

// Set gives a key its instant, in place of the one that it may have.
func (t *Timers[K]) Set(key K, at int64) {
	t.seq++
	one := timer[K]{uint64(at) ^ signBit, t.seq, key}
	i, known := t.at[key]
	if !known {
		if t.at == nil {
			t.at = map[K]int{}
		}
		i = len(t.heap)
		t.heap = append(t.heap, one)
	}
	t.settle(i, one)
}

// Remove takes a key out; nothing happens if it is not in.
func (t *Timers[K]) Remove(key K) {
	i, ok := t.at[key]
	if !ok {
		return
	}
	last := len(t.heap) - 1
	moved := t.heap[last]
	t.heap[last] = timer[K]{}
	t.heap = t.heap[:last]
	delete(t.at, key)
	if i < last {
		t.settle(i, moved)
	}
}

// PopDue takes the earliest key out if its instant is now or before; ok is false if none is.
func (t *Timers[K]) PopDue(now int64) (key K, ok bool) {
	if len(t.heap) == 0 || t.Next() > now {
		return key, false
	}
	key = t.heap[0].key
	t.Remove(key)
	return key, true
}

// settle puts one into the hole at i and moves it to its place.
func (t *Timers[K]) settle(i int, one timer[K]) {
	for i > 0 && one.before(t.heap[(i-1)/2]) {
		t.put(i, t.heap[(i-1)/2])
		i = (i - 1) / 2
	}
	for {
		child := 2*i + 1
		if child+1 < len(t.heap) && t.heap[child+1].before(t.heap[child]) {
			child++
		}
		if child >= len(t.heap) || !t.heap[child].before(one) {
			break
		}
		t.put(i, t.heap[child])
		i = child
	}
	t.put(i, one)
}

func (t *Timers[K]) put(i int, one timer[K]) {
	t.heap[i] = one
	t.at[one.key] = i
}
