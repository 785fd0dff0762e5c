package grpcbalancer

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/randomsubsetting"
	"google.golang.org/grpc/balancer/weightedtarget"

	"github.com/evenkeel/evenkeel/internal/config"
)

// parents are policies of gRPC's that have another one below them, each with the config that has %s for it.
var parents = map[string]string{
	randomsubsetting.Name: `{"subsetSize": 3, "childPolicy": [{"not_registered": {}}, %s]}`,
	weightedtarget.Name:   `{"targets": {"zone": {"weight": 7, "childPolicy": [%s]}}}`,
}

// handedOn is a child's config as it comes out of a parent that was given it, marshalled its own config, parsed that, and
// marshalled it again.
func handedOn(t testing.TB, parent, child string) string {
	t.Helper()
	text := fmt.Sprintf(parents[parent], child)
	for range 2 {
		c, err := balancer.Get(parent).(balancer.ConfigParser).ParseConfig([]byte(text))
		if err != nil {
			t.Fatalf("%s: %s: %v", parent, text, err)
		}
		again, err := json.Marshal(c)
		if err != nil {
			t.Fatalf("%s: %v", parent, err)
		}
		text = string(again)
	}
	type policies []map[string]json.RawMessage
	var whole struct {
		ChildPolicy policies
		Targets     map[string]struct{ ChildPolicy policies }
	}
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		t.Fatal(err)
	}
	list := append(whole.ChildPolicy, whole.Targets["zone"].ChildPolicy...)
	if len(list) != 1 {
		t.Fatalf("%s hands on %s", parent, text)
	}
	written, err := json.Marshal(list[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}

// checkParents expects of a config that is valid that it is the same behind each parent, and behind one in another.
func checkParents(t testing.TB, name string, text []byte) {
	t.Helper()
	parser := balancer.Get(name).(balancer.ConfigParser)
	first, err := parser.ParseConfig(text)
	if err != nil {
		if !strings.HasPrefix(err.Error(), "grpcbalancer: ") {
			t.Errorf("%.200q: error %v, want one that names the package", text, err)
		}
		return
	}
	if strings.TrimSpace(string(text)) == "" {
		text = []byte("null") // what a parent has in its place
	}
	child := fmt.Sprintf(`{%q: %s}`, name, text)
	for outer := range parents {
		once := handedOn(t, outer, child)
		for inner := range parents {
			nested := handedOn(t, inner, fmt.Sprintf(`{%q: %s}`, outer, fmt.Sprintf(parents[outer], once)))
			var chain map[string]json.RawMessage
			if err := json.Unmarshal([]byte(nested), &chain); err != nil || chain[outer] == nil {
				t.Fatalf("%s in %s: %s, %v", outer, inner, nested, err)
			}
		}
		var own map[string]json.RawMessage
		if err := json.Unmarshal([]byte(once), &own); err != nil {
			t.Fatal(err)
		}
		again, err := parser.ParseConfig(own[name])
		if err != nil {
			t.Fatalf("%s: %s became %s, which is refused: %v", outer, text, once, err)
		}
		if was, is := first.(*lbConfig), again.(*lbConfig); !reflect.DeepEqual(was.config, is.config) || !reflect.DeepEqual(was.given, is.given) {
			t.Errorf("%s: %s became %s:\n%+v\n%+v", outer, text, once, was.config, is.config)
		}
	}
}

// configSeeds are the documented configs, one with every field, and some that are refused.
func configSeeds(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	seeds := []string{"", "null", "{}", "[]", "{", `{"policy": null}`, `{"policy": {"p2c": {"choices": 1e999}}}`, "\xff\x00",
		`{"keys": [{"cookie": "c"}]}`, `{"health": {"protocol": "grpc", "port": 1}}`, `{"a_newer_field": {"x": [1]}}`,
		`{"subset": {"client_index_env": "EVENKEEL_TEST_NO_SUCH_VARIABLE"}}`, strings.Repeat(`{"a":`, 10_000)}
	for line := range strings.Lines(string(text)) {
		if line, ok := strings.CutPrefix(line, "//\t{"); ok {
			seeds = append(seeds, "{"+strings.TrimSpace(line))
		}
	}
	whole, err := config.Marshal(everyField())
	if err != nil {
		t.Fatal(err)
	}
	return append(append(seeds, anyConfigs...), string(whole))
}

func TestConfigsAreTheSameBelowEachParent(t *testing.T) {
	seeds := configSeeds(t)
	if len(seeds) < 20 {
		t.Fatalf("%d configs", len(seeds))
	}
	for _, text := range append(seeds, eventConfigs...) {
		checkParents(t, Name, []byte(text))
		checkParents(t, lastName, []byte(text)) // whose own config has no JSON form
	}
	for _, c := range everyPolicy {
		checkParents(t, Name, []byte(`{"policy": `+c.policy+`}`))
	}
}

// FuzzConfig expects of any text that it is refused by name, or the same below every parent.
func FuzzConfig(f *testing.F) {
	for _, seed := range configSeeds(f) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) { checkParents(t, Name, text) })
}
