package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
)

// leaves calls use for every number and every length of time in a JSON tree, with its path and a way to replace it.
func leaves(path string, v any, replace func(any), use func(path string, span bool, replace func(any))) {
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			leaves(path+"."+name, x, func(y any) { v[name] = y }, use)
		}
	case []any:
		for i, x := range v {
			leaves(fmt.Sprintf("%s[%d]", path, i), x, func(y any) { v[i] = y }, use)
		}
	case float64:
		use(path, false, replace)
	case string:
		if _, err := time.ParseDuration(v); err == nil {
			use(path, true, replace)
		}
	}
}

// The values that no number and no length of time can have. Those of JSON itself, which has no NaN, come as text.
var (
	noNumbers = []string{`1e999`, `-1e999`, `-1e308`, `"NaN"`, `"Infinity"`, `true`, `[]`, `{}`, `""`}
	noSpans   = []string{`"NaN"`, `"Infs"`, `"1e999s"`, `"9999999999h"`, `5`, `1e999`, `false`, `[]`, `{}`, `""`}
)

// negative are the lengths of time that may be below 0.
var negative = map[string]bool{".outlier.ramp.window": true, ".reports.weight.blackout": true}

// Wherever a number or a length of time is read, what it cannot be is refused, by name. NaN itself is no JSON.
func TestWhatNoNumberCanBeIsRefusedEverywhere(t *testing.T) {
	var configs []evenkeel.Config
	for _, c := range filled(t, reflect.TypeFor[evenkeel.Config]()) {
		configs = append(configs, c.Interface().(evenkeel.Config))
	}
	for _, form := range policies() {
		zero := form.read(&decoder{}, "", []byte("{}"))
		for _, p := range filled(t, reflect.TypeOf(zero)) {
			configs = append(configs, evenkeel.Config{Policy: p.Interface().(evenkeel.Policy)})
		}
	}
	tried := map[string]bool{}
	for _, c := range configs {
		text, err := Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var tree any
		if err := json.Unmarshal(text, &tree); err != nil {
			t.Fatal(err)
		}
		leaves("", tree, nil, func(path string, span bool, replace func(any)) {
			if tried[path] {
				return
			}
			tried[path] = true
			list := noNumbers
			if span {
				list = noSpans
				if !negative[path] {
					list = append(list, `"-1s"`, `"-2562047h47m16.854775808s"`)
				}
			}
			for _, bad := range list {
				replace(json.RawMessage(bad))
				refused(t, path, bad, tree)
			}
			replace(nil) // absent, for the leaves after it
		})
	}
	if _, _, err := Parse([]byte(`{"outlier": {"ramp": {"aggression": NaN}}}`)); err == nil {
		t.Error("NaN was taken")
	}
	if len(tried) < 60 {
		t.Errorf("%d places were tried", len(tried))
	}
}

func refused(t *testing.T, path, bad string, tree any) {
	t.Helper()
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	name := path[strings.LastIndexAny(path, ".")+1:]
	got, _, err := Parse(text)
	if err == nil {
		t.Errorf("%s was taken at %s: %+v", bad, path, got)
	} else if plain := strings.ReplaceAll(name, "_", ""); !strings.Contains(err.Error(), name) && !strings.Contains(strings.ToLower(err.Error()), plain) {
		t.Errorf("%s at %s: the error does not name it: %v", bad, path, err)
	}
	if !reflect.DeepEqual(got, evenkeel.Config{}) && err != nil {
		t.Errorf("%s at %s: there is an error and a configuration, %+v", bad, path, got)
	}
}
