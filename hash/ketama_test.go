package hash

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
)

// readJSON reads a file of testdata.
func readJSON(t testing.TB, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// With the numbers of points that libmemcached's rule gives for the whole list, keys are where
// it has them.
func TestKetamaIsThatOfLibmemcached(t *testing.T) {
	var vectors struct {
		Weights []float64
		Keys    [][4]any
	}
	readJSON(t, "ketama.json", &vectors)
	sum := 0.0
	for _, w := range vectors.Weights {
		sum += w
	}
	var list []Endpoint
	for i, w := range vectors.Weights {
		digests := int(w / sum * 40 * float64(len(vectors.Weights)))
		list = append(list, Endpoint{ID: fmt.Sprintf("10.0.1.%d", i+1), Weight: float64(digests) / 40})
	}
	ring := newTestRing(t, list, RingConfig{Ketama: true})
	for _, v := range vectors.Keys {
		key := KetamaSum(v[0].(string))
		if got := float64(key >> 32); got != v[1] || key<<32 != 0 {
			t.Errorf("the hash of %q is %v, want %v", v[0], got, v[1])
		}
		if got := float64(ring.circle.points[ring.circle.find(key)] >> 32); got != v[2] {
			t.Errorf("the point of %q is %v, want %v", v[0], got, v[2])
		}
		if got := list[ring.Lookup(key)].ID; got != v[3] {
			t.Errorf("%q goes to %s, want %s", v[0], got, v[3])
		}
	}
	if len(vectors.Keys) < 20 {
		t.Errorf("there are %d vectors, want more", len(vectors.Keys))
	}
}

func TestKetamaHas160PointsOfFortyDigests(t *testing.T) {
	list := []Endpoint{{"a:1", 1}, {"b:1", 0.5}, {"c:1", MinWeight}, {"d:1", 2.0 / 40}}
	ring := newTestRing(t, list, RingConfig{Ketama: true})
	if want := []uint32{160, 80, 4, 8}; !slices.Equal(ring.counts, want) {
		t.Errorf("points are %v, want %v", ring.counts, want)
	}
	long := string(make([]byte, 1000))
	if KetamaSum(long) == KetamaSum(long[1:]) {
		t.Error("long keys have the same hash")
	}
}
