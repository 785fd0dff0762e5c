package evenkeel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// affine is a policy that says itself whether it uses keys, and counts what it builds.
type affine struct {
	picker.RoundRobin
	uses   bool
	builds *int
}

func (a affine) UsesKey() bool { return a.uses }

// Build implements picker.Policy.
func (a affine) Build(m *picker.Members, prev picker.Picker) picker.Picker {
	if a.builds != nil {
		*a.builds++
	}
	return a.RoundRobin.Build(m, prev)
}

// incomparable is a policy that Go cannot compare.
type incomparable struct {
	affine
	_ []int
}

func TestKeysThatCanBeUsedAreTaken(t *testing.T) {
	for _, keys := range [][]evenkeel.Key{
		nil, {},
		{{Header: "X-User"}}, {{Header: "x-user"}, {Header: "X-Users"}}, {{Header: "trace-bin"}},
		{{Cookie: "session"}, {Cookie: "Session"}}, // names of cookies have a case
		{{Query: "u"}, {Query: "U"}, {Query: "user id"}, {Query: "ü"}},
		{{Header: "a"}, {Cookie: "a"}, {Query: "a"}, {Path: true}, {Context: true}},
		make16(),
	} {
		if err := (evenkeel.Config{Keys: keys}).Validate(); err != nil {
			t.Errorf("%+v: %v", keys, err)
		}
	}
}

// make16 returns as many keys as there may be.
func make16() (keys []evenkeel.Key) {
	for i := range 16 {
		keys = append(keys, evenkeel.Key{Query: fmt.Sprint(i)})
	}
	return keys
}

func TestKeysThatCannotBeUsedAreAllNamed(t *testing.T) {
	long := strings.Repeat("x", 257)
	c := evenkeel.Config{Policy: picker.P2C{Choices: 99}, Keys: []evenkeel.Key{
		{}, {Header: "a", Cookie: "b"}, {Path: true, Context: true}, {Header: "x user"}, {Header: "x-user\r\nevil: 1"},
		{Header: ":path"}, {Header: "größe"}, {Cookie: "a=b"}, {Cookie: "a;b"}, {Query: "\xff"}, {Header: long}, {Query: long},
		{Header: "X-User"}, {Header: "x-uSER"},
	}}
	err := c.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	const token = ", want a name of letters, digits and any of !#$%&'*+-.^_`|~"
	for _, want := range []string{
		"picker: P2C.Choices is 99",
		"evenkeel: Config.Keys[0] is empty, want one of Header, Cookie, Query, Path and Context",
		"evenkeel: Config.Keys[1] has Header and Cookie, want one of them",
		"evenkeel: Config.Keys[2] has Path and Context, want one of them",
		`evenkeel: Config.Keys[3].Header is "x user"` + token,
		`evenkeel: Config.Keys[4].Header is "x-user\r\nevil: 1"` + token,
		`evenkeel: Config.Keys[5].Header is ":path"` + token,
		`evenkeel: Config.Keys[6].Header is "größe"` + token,
		`evenkeel: Config.Keys[7].Cookie is "a=b"` + token,
		`evenkeel: Config.Keys[8].Cookie is "a;b"` + token,
		`evenkeel: Config.Keys[9].Query is "\xff", want UTF-8`,
		"evenkeel: Config.Keys[10].Header has 257 bytes, want at most 256",
		"evenkeel: Config.Keys[11].Query has 257 bytes, want at most 256",
		"evenkeel: Config.Keys[13] is the same as Keys[12], want each once",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 14 {
		t.Errorf("%d problems, want 14:\n%v", n, err)
	}
	const tooMany = "evenkeel: Config.Keys has 17 keys, want at most 16"
	if err := (evenkeel.Config{Keys: append(make16(), evenkeel.Key{})}).Validate(); err == nil || err.Error() != tooMany {
		t.Errorf("%v, want %s", err, tooMany)
	}
}

func TestAContextHasTheKeyThatItWasGivenLast(t *testing.T) {
	ctx := context.Background()
	want := func(ctx context.Context, key string) {
		t.Helper()
		if got, ok := evenkeel.KeyFromContext(ctx); got != key || ok != (key != "") {
			t.Errorf("%q, %v, want %q", got, ok, key)
		}
	}
	want(ctx, "")
	alice := evenkeel.WithKey(ctx, "alice")
	child, cancel := context.WithCancel(alice)
	defer cancel()
	want(child, "alice")
	want(evenkeel.WithKey(child, "bob"), "bob")
	want(evenkeel.WithKey(child, ""), "")
	want(ctx, "")
}

// It is looked up on each request.
func TestKeyFromContextAllocatesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(evenkeel.WithKey(context.Background(), "alice"))
	defer cancel()
	if n := testing.AllocsPerRun(100, func() { evenkeel.KeyFromContext(ctx) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestOnlyPoliciesThatSaySoUseKeys(t *testing.T) {
	for _, c := range []struct {
		policy evenkeel.Policy
		want   bool
	}{
		{nil, false}, {picker.RoundRobin{}, false}, {affine{}, false}, {affine{uses: true}, true},
	} {
		if got := (evenkeel.Config{Policy: c.policy}).UsesKey(); got != c.want {
			t.Errorf("%T: %v, want %v", c.policy, got, c.want)
		}
	}
}

// An equal config changes nothing silently; one that differs in anything is taken.
func TestSetConfigSeesThatKeysOrPolicyAreOthers(t *testing.T) {
	builds, same := 0, affine{}
	same.builds = &builds
	config := func(policy evenkeel.Policy, keys ...evenkeel.Key) evenkeel.Config {
		return evenkeel.Config{Policy: policy, Keys: keys}
	}
	header, path := evenkeel.Key{Header: "x-user"}, evenkeel.Key{Path: true}
	p := newPool(t, config(same, header), 3)
	for i, step := range []struct {
		config evenkeel.Config
		taken  int
	}{
		{config(same, header), 0},
		{config(same, path), 1},
		{config(same, path), 0},
		{config(same, path, header), 1},
		{config(same), 1},
		{evenkeel.Config{Policy: same, Keys: []evenkeel.Key{}}, 0}, // no keys either
		{config(incomparable{affine: same}), 1},
		{config(incomparable{affine: same}), 1}, // nobody can tell
		{config(affine{uses: true, builds: &builds}), 1},
	} {
		builds = 0
		if err := p.SetConfig(step.config); err != nil || builds != step.taken {
			t.Errorf("step %d: %d builds, %v, want %d", i, builds, err, step.taken)
		}
	}
	builds = 0
	if err := p.SetConfig(config(same, evenkeel.Key{})); err == nil || builds != 0 {
		t.Errorf("an empty key: %v, %d builds, want an error and nothing changed", err, builds)
	}
}
