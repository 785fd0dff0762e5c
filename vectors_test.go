package evenkeel_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// areas says how many vectors each area has and whose tests run them, each against its own copy of the file, or why
// nobody does.
var areas = map[string]struct {
	n   int
	who string
}{
	"outlier.envoy":   {16, "outlier"},
	"outlier.a50":     {10, "outlier"},
	"outlier.breaker": {2, "outlier"},
	"panic":           {3, "outlier; the one of a fleet: internal/sim"},
	"slowstart":       {3, "outlier, and the pool's here"},
	"concurrency":     {3, "internal/limit; the one of rejections: outlier too"},
	"retry.budget":    {4, "internal/limit"},
	"health":          {8, "internal/health"},
	"classify":        {1, "outlier, by status; httpclient, by error"},
	"simulation":      {1, "internal/sim"},
	"weights":         {1, "orca"},

	"retry.throttle": {1, "nobody: gRPC's own formula, which its channel applies"},
	"throttle":       {1, "nobody: others' formulas; our limit adapts instead"},
	"hedge":          {3, "nobody yet: copies of slow requests"},
}

// Packages have copies of the same vectors, as they cannot read each other's once they are somebody's dependency: all
// are alike, and every area has somebody who runs it, or a reason.
func TestCopiesOfTheVectorsAreAlike(t *testing.T) {
	for name, least := range map[string]int{"reliability.json": 4, "signals-and-rules.json": 2} {
		var copies []string
		for _, pattern := range []string{"*/testdata/", "internal/*/testdata/"} {
			found, err := filepath.Glob(pattern + name)
			if err != nil {
				t.Fatal(err)
			}
			copies = append(copies, found...)
		}
		if len(copies) < least {
			t.Errorf("%s has %d copies, want %d at least: %v", name, len(copies), least, copies)
		}
		var first []byte
		for _, path := range copies {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = text
			}
			if !bytes.Equal(text, first) {
				t.Errorf("%s is not as %s is", path, copies[0])
			}
		}
	}
}

func TestEveryAreaOfTheVectorsIsRunOrLeftForAReason(t *testing.T) {
	text, err := os.ReadFile("outlier/testdata/reliability.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []struct{ Area string } }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, v := range file.Vectors {
		n[v.Area]++
	}
	for area, have := range n {
		if want := areas[area]; have != want.n {
			t.Errorf("%s has %d vectors, and %d are known, which %q runs", area, have, want.n, want.who)
		}
	}
	for area, want := range areas {
		if n[area] == 0 {
			t.Errorf("%s has none of %d vectors", area, want.n)
		}
	}
}
