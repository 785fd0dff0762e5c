package subset

import (
	"errors"
	"strings"
	"testing"
)

func TestOrdinalIsTheNumberAtTheEndOfAName(t *testing.T) {
	for name, want := range map[string]int{
		"web-0": 0, "web-12": 12, "a-b-7": 7, "web-3.web.default.svc.cluster.local": 3, "web-16777215": 16777215, "ip-10-0-0-1": 1,
	} {
		if got, err := Ordinal(name); err != nil || got != want {
			t.Errorf("Ordinal(%q) is %d, %v, want %d", name, got, err, want)
		}
	}
	for _, name := range []string{
		"", "web", "web-", "web-a", "web-1a", "web-01", "web--", "-1", "12", "web-+1", "web- 1", "web-16777216", "web-99999999999999999999",
		"web.a-1", "web-٣", "web_1", "web-7d9c5b6d4-x2x4z", strings.Repeat("x", 1000),
	} {
		if got, err := Ordinal(name); err == nil || got != 0 || len(err.Error()) > 400 {
			t.Errorf("Ordinal(%q) is %d, %v, want a short error", name, got, err)
		}
	}
	if got, err := Ordinal("web--1"); err != nil || got != 1 {
		t.Errorf("the number after a last hyphen is %d, %v", got, err)
	}
}

func TestIndexComesFromWhereItIsToComeFrom(t *testing.T) {
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"NUMBER": "7", "POD": "web-8", "EMPTY": "", "WRONG": "web", "NEGATIVE": "-3"}[name]
		return v, ok
	}
	host := func() (string, error) { return "db-9", nil }
	for _, v := range []struct {
		index Index
		want  int
		ok    bool
		text  string // of the error
	}{
		{Index{}, 0, false, ""},
		{IndexOf(0), 0, true, ""},
		{IndexOf(5), 5, true, ""},
		{IndexOf(-1), 0, false, "Index.Value is -1"},
		{IndexOf(MaxClients), 0, false, "Index.Value is 16777216"},
		{IndexFromEnv("NUMBER"), 7, true, ""},
		{IndexFromEnv("POD"), 8, true, ""},
		{IndexFromEnv("EMPTY"), 0, false, `the name is ""`},
		{IndexFromEnv("WRONG"), 0, false, `Index.Variable is "WRONG": subset: the name is "web"`},
		{IndexFromEnv("NEGATIVE"), 0, false, `the name is "-3"`},
		{IndexFromEnv("MISSING"), 0, false, `Index.Variable is "MISSING", which is not set`},
		{IndexFromHost(), 9, true, ""},
		{Index{Source: 9}, 0, false, "Index.Source is 9"},
	} {
		got, ok, err := v.index.resolve(env, host)
		if got != v.want || ok != v.ok || (err != nil) != (v.text != "") || err != nil && !strings.Contains(err.Error(), v.text) {
			t.Errorf("%+v is %d, %v, %v, want %d, %v, %q", v.index, got, ok, err, v.want, v.ok, v.text)
		}
	}
	broken := errors.New("no name")
	if _, _, err := IndexFromHost().resolve(env, func() (string, error) { return "", broken }); !errors.Is(err, broken) {
		t.Errorf("a host without a name gives %v", err)
	}
	t.Setenv("EVENKEEL_TEST_INDEX", "4")
	if got, ok, err := IndexFromEnv("EVENKEEL_TEST_INDEX").Resolve(); got != 4 || !ok || err != nil {
		t.Errorf("the environment gives %d, %v, %v", got, ok, err)
	}
}

func FuzzOrdinal(f *testing.F) {
	for _, name := range []string{"web-12", "web", "-", "a-01", "web-3.x-4", "a-99999999", "\xff-1"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if i, err := Ordinal(name); err == nil && (i < 0 || i >= MaxClients) || err != nil && i != 0 {
			t.Errorf("Ordinal(%q) is %d, %v", name, i, err)
		}
	})
}

// Any bytes make a list; no algorithm gives anything but indices in order, and none panics.
func FuzzSubsets(f *testing.F) {
	f.Add([]byte("abcabd"), 3, 10, 2)
	f.Add([]byte(""), 0, 0, 0)
	f.Add([]byte("zyxwvutsrqponmlkjihgfedcba"), 77, 100, 5)
	f.Add([]byte("aa"), -1, -1, -1)
	f.Fuzz(func(t *testing.T, text []byte, index, count, size int) {
		var m Members
		for _, b := range text[:min(len(text), 300)] {
			m.IDs = append(m.IDs, string([]byte{b}))
		}
		for name, choose := range algorithms {
			got, err := choose(Client{Index: index, Count: count, Seed: uint64(size)}, m, size)
			if err != nil && got != nil {
				t.Errorf("%s gives %v and %v", name, got, err)
			}
			for k, i := range got {
				if i < 0 || i >= len(m.IDs) || k > 0 && got[k-1] >= i {
					t.Fatalf("%s gives %v of %d", name, got, len(m.IDs))
				}
			}
			if err == nil && len(got) == 0 && len(m.IDs) > 0 {
				t.Errorf("%s gives nothing of %d", name, len(m.IDs))
			}
		}
	})
}
