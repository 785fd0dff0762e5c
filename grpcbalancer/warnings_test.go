package grpcbalancer

import (
	"fmt"
	"slices"
	"testing"
)

func TestWarningsAreToldOnceAndBounded(t *testing.T) {
	var told []string
	w := warnings{tell: func(text string) { told = append(told, text) }}
	w.add("kind", "first")
	w.add("kind", "second of the kind")
	w.addOnce("other")
	w.addOnce("other")
	if want := []string{"first", "other"}; !slices.Equal(told, want) || !slices.Equal(w.list(), want) {
		t.Errorf("told %q, kept %q, want %q", told, w.list(), want)
	}
	for i := range 2 * maxWarnings {
		w.addOnce(fmt.Sprint(i))
	}
	if len(w.list()) != maxWarnings || len(told) != maxWarnings {
		t.Errorf("%d were told, %d kept, want %d", len(told), len(w.list()), maxWarnings)
	}
}
