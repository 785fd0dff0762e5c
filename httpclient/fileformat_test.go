package httpclient

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestFileHasLinesOrJSON(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"10.0.0.1:80", "10.0.0.1:80"},
		{"10.0.0.1:80\n\n  10.0.0.2:80\t2.5\r\n# a comment\n10.0.0.3 0 # drained\n", "10.0.0.1:80 10.0.0.2:80=2.5 10.0.0.3=0"},
		{"[fd00::1]:80\n", "[fd00::1]:80"},
		{"[::1]\nfd00::2", "[::1] fd00::2"},
		{"10.0.0.1:80\n10.0.0.1:80#2 3\n", "10.0.0.1:80 10.0.0.1:80#2=3"},
		{"10.0.0.1:80 1e2", "10.0.0.1:80=100"},
		{"[]", ""},
		{" [ ] \n", ""},
		{`["10.0.0.1:80", {"addr": "svc", "weight": 2.5}, {"addr": "[fd00::1]:80"}]`, "10.0.0.1:80 [fd00::1]:80 svc=2.5"},
		{"\n[\n\"a:1\"\n,\n{\"weight\":0,\"addr\":\"b:1\"}]\n", "a:1 b:1=0"},
		{`[{"addr":"a:1","weight":null}]`, "a:1"},
	} {
		list, err := parseFile("x", []byte(c.text))
		if got := listed(list); err != nil || got != c.want {
			t.Errorf("%q is %s, %v, want %s", c.text, got, err, c.want)
		}
	}
}

func TestFileWithAProblemIsRefusedWithLineAndValue(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", []string{`File "x" line 1: the file has 0 addresses, want at least 1`}},
		{"# nobody\n\n", []string{"line 2: the file has 0 addresses"}},
		{"a:1\n::1:8080\nb:x\n", []string{`httpclient: File "x" line 2: Addr is "::1:8080", want brackets`, `line 3: Addr is "b:x", want a port`}},
		{"a:1\nA:1\n", []string{`line 2: Addr is "A:1", the same as File "x" line 1, want each once`}},
		{"a:1 -1\nb:1 NaN\nc:1 1e300\nd:1 1e999\n", []string{"line 1: Weight is -1, want 0 or", "line 2: Weight is NaN", "line 3: Weight is 1e+300", "line 4: Weight is +Inf"}},
		{"a:1 x\nb:1 2 3\na:1, b:1\n", []string{`line 1: the text is "a:1 x", want an address, and a weight or none`, `line 2: the text is "b:1 2 3"`, `line 3: the text is "a:1, b:1"`}},
		{"a:1\x00", []string{"line 1: Addr is"}},
		{"[\n\"a:1\",\n\"b:x\"]", []string{`File "x" line 3: Addr is "b:x", want a port`}},
		{"[\"a:1\",\n{\"addr\":\"b:1\",\"wieght\":2},\n{\"addr\":\"b:1\",\"weight\":\"2\"},\n{},null,\n[\"c:1\"],1]", []string{
			`line 2: the value is "{\"addr\":\"b:1\",\"wieght\":2}", want a string, or an object of "addr" and "weight"`,
			"line 3: the value is", `line 4: the value is "{}"`, `line 4: the value is "null"`, `line 5: the value is "[\"c:1\"]"`, `line 5: the value is "1"`}},
		{"[\n\"a:1\",\n\"b:", []string{"line 3: the text is no JSON array: unexpected EOF"}},
		{"[\n\"a:1\",\n\n\"b:1\", \n\n b:1\n\n]", []string{"line 6: the text is no JSON array"}},
		{"[\n\"a:1\"\n\"b:1\"]", []string{"line 3: the text is no JSON array"}},
		{"[\"a:1\",\n", []string{"line 2: the text is no JSON array"}},
		{"[\"a:1\"]\n[\"b:1\"]", []string{`the text after the array is "[\"b:1\"]", want none`}},
		{"[", []string{"line 1: the text is no JSON array"}},
		{`{"addr":"a:1"}`, []string{"line 1: Addr is"}},
		{`[{"addr":"a:1","weight":-2}]`, []string{"line 1: Weight is -2"}},
	} {
		list, err := parseFile("x", []byte(c.text))
		if err == nil {
			t.Errorf("%q is %s, want an error", c.text, listed(list))
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v\nwant %q in it", c.text, err, want)
			}
		}
		if n := strings.Count(err.Error(), "httpclient:"); n != len(c.want) {
			t.Errorf("%q: %d problems, want %d:\n%v", c.text, n, len(c.want), err)
		}
	}
}

func TestFileBoundsAddressesAndProblems(t *testing.T) {
	var lines strings.Builder
	for i := range maxAddresses + 1 {
		fmt.Fprintf(&lines, "h%d:1\n", i)
	}
	_, err := parseFile("x", []byte(lines.String()))
	if err == nil || !strings.Contains(err.Error(), "line 131073: there are 131072 addresses before it, want no more") {
		t.Errorf("%v", err)
	}
	_, err = parseFile("x", []byte(strings.Repeat("a b c\n", 1000)))
	if err == nil || strings.Count(err.Error(), "\n") != maxProblems || !strings.Contains(err.Error(), "and 984 more problems in the file") {
		t.Errorf("%v", err)
	}
}

// What is read is a list that can be used, or an error; and both forms can say the same.
func FuzzFileIsAListOrRefused(f *testing.F) {
	for _, s := range []string{"", "a:1\nb:1 2 # c\r\n", "[]", `["a:1",{"addr":"b","weight":0}]`, "[fd00::1]:80 1e-9", "[\"a:1\"", "\x00", "[[", "a:1#2", `["\ud800:1"]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		list, err := parseFile("x", content)
		if err != nil {
			if !strings.HasPrefix(err.Error(), `httpclient: File "x" line `) {
				t.Errorf("%q: %v, want the file and the line", content, err)
			}
			return
		}
		if _, err := locate(list, 0); err != nil {
			t.Errorf("%q is read as %v: %v", content, list, err)
		}
		entries := []map[string]any{}
		var lines strings.Builder
		for _, a := range list {
			e := map[string]any{"addr": a.Addr}
			fmt.Fprint(&lines, a.Addr)
			if a.Weight.IsSet() {
				e["weight"] = a.Weight.Value()
				fmt.Fprint(&lines, " ", a.Weight.Value())
			}
			lines.WriteString("\n")
			entries = append(entries, e)
		}
		inJSON, err := json.Marshal(entries)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parseFile("x", inJSON); err != nil || !slices.Equal(again, list) {
			t.Errorf("%q is %v, which as %s is %v, %v", content, list, inJSON, again, err)
		}
		if again, err := parseFile("x", []byte(lines.String())); len(list) > 0 && (err != nil || !slices.Equal(again, list)) {
			t.Errorf("%q is %v, which as %q is %v, %v", content, list, lines.String(), again, err)
		}
	})
}
