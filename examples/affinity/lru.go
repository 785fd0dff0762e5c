package main

import (
	"container/list"
	"sync"
)

// lru remembers the keys that were used last, up to a number of them.
type lru struct {
	mu    sync.Mutex
	size  int
	order *list.List // of keys, the latest first
	place map[string]*list.Element
}

func newLRU(size int) *lru {
	return &lru{size: size, order: list.New(), place: make(map[string]*list.Element, size)}
}

// touch makes key the latest, and reports whether it was remembered.
func (l *lru) touch(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.place[key]; ok {
		l.order.MoveToFront(e)
		return true
	}
	if l.order.Len() == l.size {
		delete(l.place, l.order.Remove(l.order.Back()).(string))
	}
	l.place[key] = l.order.PushFront(key)
	return false
}
