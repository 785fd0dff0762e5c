package grpcbalancer

import (
	"slices"
	"sync"
)

// maxWarnings bounds what is kept: they are for people.
const maxWarnings = 64

// warnings are what is allowed and may not be what is meant, each once.
type warnings struct {
	tell func(text string) // nil: nobody wants to know at once

	mu    sync.Mutex
	kinds map[string]bool
	texts []string
}

// add adds a warning, unless there is one of that kind.
func (w *warnings) add(kind, text string) {
	w.mu.Lock()
	known := w.kinds[kind] || len(w.texts) == maxWarnings
	if !known {
		if w.kinds == nil {
			w.kinds = map[string]bool{}
		}
		w.kinds[kind] = true
		w.texts = append(w.texts, text)
	}
	w.mu.Unlock()
	if !known && w.tell != nil {
		w.tell(text)
	}
}

// addOnce adds a warning that is the only one of its kind.
func (w *warnings) addOnce(text string) { w.add(text, text) }

// list returns the warnings so far.
func (w *warnings) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}
