package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel"
)

func TestParseReadsKeysInTheirOrder(t *testing.T) {
	all := []evenkeel.Key{{Header: "x-user"}, {Cookie: "session"}, {Query: "u"}, {Path: true}, {Context: true}}
	for text, want := range map[string][]evenkeel.Key{
		`{"keys": [{"header": "x-user"}, {"cookie": "session"}, {"query": "u"}, {"path": true}, {"context": true}]}`: all,
		`{"keys": [{"header": "X-User", "cookie": null, "path": false}]}`:                                            {{Header: "X-User"}},
		`{"keys": null}`:                                     nil,
		`{"keys": []}`:                                       nil,
		`{"requestHashHeader": "x-user"}`:                    all[:1],
		`{"requestHashHeader": ""}`:                          nil,
		`{"requestHashHeader": null}`:                        nil,
		`{"keys": [], "requestHashHeader": "x-user"}`:        all[:1],
		`{"requestHashHeader": "", "keys": [{"path":true}]}`: {{Path: true}},
	} {
		c, report, err := Parse([]byte(text))
		if err != nil || len(report.Unknown) != 0 || !reflect.DeepEqual(c, evenkeel.Config{Keys: want}) {
			t.Errorf("Parse(%s) = %+v, %v, %v, want keys %+v", text, c, report, err, want)
		}
	}
}

func TestParseRefusesWrongKeys(t *testing.T) {
	for text, want := range map[string]string{
		`{"keys": {"header": "x-user"}}`:                             `config: keys is {"header": "x-user"}, want a list such as [{"header": "x-user"}]`,
		`{"keys": "x-user"}`:                                         `config: keys is "x-user", want a list such as [{"header": "x-user"}]`,
		`{"keys": ["path"]}`:                                         `config: keys[0] is "path", want an object`,
		`{"keys": [null]}`:                                           `config: keys[0] is null, want an object`,
		`{"keys": [{}]}`:                                             `evenkeel: Config.Keys[0] is empty, want one of Header, Cookie, Query, Path and Context`,
		`{"keys": [{"source_ip": true}]}`:                            `evenkeel: Config.Keys[0] is empty, want one of Header, Cookie, Query, Path and Context`,
		`{"keys": [{"header": 1}]}`:                                  `config: keys[0].header is 1, want a string`,
		`{"keys": [{"path": "yes"}]}`:                                `config: keys[0].path is "yes", want true or false`,
		`{"keys": [{"header": "a", "cookie": "a"}]}`:                 `evenkeel: Config.Keys[0] has Header and Cookie, want one of them`,
		`{"keys": [{"path": true}, {"path": true}]}`:                 `evenkeel: Config.Keys[1] is the same as Keys[0], want each once`,
		`{"requestHashHeader": 1}`:                                   `config: requestHashHeader is 1, want a string`,
		`{"requestHashHeader": ["a"]}`:                               `config: requestHashHeader is ["a"], want a string`,
		`{"requestHashHeader": "x user"}`:                            `evenkeel: Config.Keys[0].Header is "x user", want a name of letters`,
		`{"requestHashHeader": "a", "keys": [{"header": "a"}]}`:      `config: requestHashHeader is "a", want none beside keys`,
		`{"strict": true, "keys": [{"heder": "a", "header": "b"}]}`:  `config: keys[0].heder is not a known field, want one of header, cookie, query, path, context (nearest: header)`,
		`{"keys": [` + strings.Repeat(`{"path":true},`, 16) + `{}]}`: `evenkeel: Config.Keys has 17 keys, want at most 16`,
	} {
		c, _, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || !reflect.DeepEqual(c, evenkeel.Config{}) {
			t.Errorf("Parse(%s) = %+v, %v, want an error with %q", text, c, err, want)
		}
	}
}

// One key that cannot be read neither hides what is wrong with the others, nor moves them.
func TestParseFindsAllProblemsOfKeysAtOnce(t *testing.T) {
	_, _, err := Parse([]byte(`{"keys": [5, {"header": "a b"}, {"cookie": []}, {}, 6], "requestHashHeader": "x", "policy": "fastest"}`))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"config: keys[0] is 5, want an object", `Keys[1].Header is "a b"`, "config: keys[2].cookie is [], want a string",
		"Keys[3] is empty", "config: keys[4] is 6, want an object", `requestHashHeader is "x", want none`, `policy is "fastest"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 7 {
		t.Errorf("%d problems, want 7:\n%v", n, err)
	}
}

func TestMarshalWritesKeysAsAList(t *testing.T) {
	for text, want := range map[string]string{
		`{"requestHashHeader": "X-User"}`: `{"keys":[{"header":"X-User"}]}`,
		`{"keys": [{"context": true}, {"query": "\u00fc <&> \""}, {"path": true}], "policy": "random"}`: `{"keys":[{"context":true},{"query":"ü \u003c\u0026\u003e \""},{"path":true}],"policy":{"random":{}}}`,
		`{"keys": []}`: `{}`,
	} {
		c, _, err := Parse([]byte(text))
		if err != nil {
			t.Errorf("Parse(%s): %v", text, err)
			continue
		}
		roundTrip(t, c)
		if got, err := Marshal(c); err != nil || string(got) != want {
			t.Errorf("Marshal of %s = %s, %v, want %s", text, got, err, want)
		}
	}
	if text, err := Marshal(evenkeel.Config{Keys: []evenkeel.Key{{}}}); err == nil {
		t.Errorf("Marshal of an invalid key = %s, want an error", text)
	}
}
