package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wellFormed reads text as XML and returns its elements.
func wellFormed(t *testing.T, text string) []xml.StartElement {
	t.Helper()
	var out []xml.StartElement
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			line, column := d.InputPos()
			t.Fatalf("no XML at %d:%d: %v", line, column, err)
		}
		if e, ok := token.(xml.StartElement); ok {
			out = append(out, e.Copy())
		}
	}
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// pageOf runs the command and returns its output and its page.
func pageOf(t *testing.T, line string) (out, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "out.html")
	var stdout, stderr strings.Builder
	if status := run(append(words(line), "-html", file), &stdout, &stderr); status != 0 {
		t.Fatalf("%s: status %d\n%s", line, status, stderr.String())
	}
	html, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(stdout.String(), file, "out.html"), string(html)
}

// The pages are of fleets that differ in what charts and tables have to cope with.
var pageLines = []string{
	"-preset slow-backend -duration 2s -seeds 2 -sweep-seeds 1",
	"-preset rolling-drain -duration 1s -seeds 1 -sweeps=false -bound none",
	"-preset closed-loop -duration 200ms -seeds 1 -sweep-seeds 1 -policies default",
	"-preset hung-backend -timeout 0s -duration 1s -seeds 1 -sweeps=false",
	"-endpoints 100 -utilisation 1.1 -duration 100ms -seeds 1 -sweeps=false -speeds 90x1/2 -policies " +
		`p2c,{"p2c":{"choices":3}},{"p2c":{"signal":"in_flight","choices":4}},least,adaptive,default`,
	"-rate 0.01 -duration 3s -seeds 1 -sweep-seeds 1", // most likely not one request
	"-cold 1s-,first=8 -endpoints 8 -duration 2s -seeds 1 -sweeps=false",
	"-endpoints 100 -speeds 60x1/2 -rate 100 -duration 1s -warmup 0s -seeds 1 -step 5ms -sweeps=false", // steps without requests, ranges
}

func TestThePageIsWellFormedAndStandsAlone(t *testing.T) {
	for _, line := range pageLines {
		_, text := pageOf(t, line)
		ids := map[string]bool{}
		var refs []string
		for _, e := range wellFormed(t, text) {
			if id := attribute(e, "id"); id != "" {
				if ids[id] {
					t.Errorf("%s: two elements have the id %q", line, id)
				}
				ids[id] = true
			}
			refs = append(refs, strings.Fields(attribute(e, "aria-labelledby"))...)
			switch e.Name.Local {
			case "script", "link", "img", "iframe", "object", "use", "image":
				t.Errorf("%s: there is a %s", line, e.Name.Local)
			}
			for _, a := range e.Attr {
				if a.Name.Local == "src" || a.Name.Local == "href" || strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "style" {
					t.Errorf("%s: %s has %s=%q", line, e.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
		for _, ref := range refs {
			if !ids[ref] {
				t.Errorf("%s: nothing has the id %q", line, ref)
			}
		}
		for _, bad := range []string{"NaN", "Inf", "http:", "https:", "url(", "@import", "ZgotmplZ", os.TempDir()} {
			if i := strings.Index(text, bad); i >= 0 {
				t.Errorf("%s: the page has %q in …%s…", line, bad, text[max(i-80, 0):i+40])
			}
		}
	}
}

// Who is answered sooner asks more often, so that percentiles of a closed loop are of
// different requests.
func TestTheBoundOfAClosedLoopIsNone(t *testing.T) {
	out, text := pageOf(t, "-preset closed-loop -duration 200ms -seeds 1 -sweep-seeds 1")
	for _, where := range []string{out, text} {
		for _, want := range []string{"CLOSED LOOP: jsed is no bound here", "jsed (reference)"} {
			if !strings.Contains(where, want) {
				t.Errorf("nothing says %q", want)
			}
		}
		for _, bad := range []string{"(bound)", "the bound", "bound's", "The bound"} {
			if i := strings.Index(where, bad); i >= 0 {
				t.Errorf("there is a bound: …%s…", where[max(i-80, 0):i+40])
			}
		}
	}
	if want := `<p class="warning" role="note">CLOSED LOOP`; !strings.Contains(text, want) {
		t.Error("the page does not say it first")
	}
	if out, _ := pageOf(t, "-duration 200ms -seeds 1 -sweeps=false"); strings.Contains(out, "CLOSED") || !strings.Contains(out, "jsed (bound)") {
		t.Error(out)
	}
}

func TestManyEndpointsMakeNoLargePage(t *testing.T) {
	_, text := pageOf(t, "-endpoints 2000 -speeds 1000x1/2 -duration 50ms -seeds 1 -sweeps=false -clients 1")
	if len(text) > 200_000 {
		t.Errorf("%d bytes", len(text))
	}
	if want := "In colour: the range of endpoints 1001 to 2000, and their median."; !strings.Contains(text, want) {
		t.Errorf("the page does not say %q", want)
	}
}

func TestNumbersAndUnitsStayTogether(t *testing.T) {
	if got, want := tied("1.00 s with p2c (8.3 % of 5 ms), 3 runs"), "1.00\u00a0s with p2c (8.3\u00a0% of 5\u00a0ms), 3 runs"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestEveryDrawingHasATitleAndADescription(t *testing.T) {
	_, text := pageOf(t, pageLines[0])
	drawings := regexp.MustCompile(`<svg id="([^"]+)"[^>]*role="img"[^>]*><title id="([^"]+)">([^<]+)</title><desc id="([^"]+)">([^<]+)</desc>`).
		FindAllStringSubmatch(text, -1)
	// In two sizes: the glance, p99, p50 and two sweeps; then two panels of each of four policies.
	if want := 2*5 + 2*4; len(drawings) != want {
		t.Errorf("%d drawings, want %d", len(drawings), want)
	}
	for _, d := range drawings {
		if d[2] != d[1]+"-t" || d[4] != d[1]+"-d" {
			t.Errorf("%q", d[:5])
		}
	}
	if n := strings.Count(text, "<svg") - strings.Count(text, `aria-hidden="true"`); n != len(drawings) {
		t.Errorf("%d drawings, %d with a title", n, len(drawings))
	}
}

func TestTheSameFlagsGiveTheSameBytes(t *testing.T) {
	line := "-preset fail-fast -duration 1s -seeds 3 -sweep-seeds 1"
	out1, text1 := pageOf(t, line)
	out2, text2 := pageOf(t, line)
	if out1 != out2 || text1 != text2 {
		t.Error("two runs differ")
	}
	if _, other := pageOf(t, line+" -seed 4"); other == text1 {
		t.Error("another seed gives the same page")
	}
}

func TestTheNumberOfWorkersChangesNothing(t *testing.T) {
	s, err := parseFlags(words("-duration 1s -seeds 4"))
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	for _, workers := range []int{1, 5} {
		p := newPlan(s)
		o, err := p.simulate(workers, &progress{out: io.Discard, now: stopped})
		if err != nil {
			t.Fatal(err)
		}
		text, err := page(newReport(p, o))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, string(text))
	}
	if pages[0] != pages[1] {
		t.Error("pages differ")
	}
}

func TestTheCommandRepeatsThePage(t *testing.T) {
	s, err := parseFlags([]string{
		"--html=" + filepath.Join(t.TempDir(), "my out.html"), "-policies", `p2c {"p2c": {"choices": 3}}`, "-sharing",
		"-fail", "20s-40s", "-fail", "1s-2s,first=1", "-rate", "5",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `go run ./cmd/fleetsim -policies 'p2c {"p2c": {"choices": 3}}' -sharing=true -rate 5 -fail 20s-40s -fail 1s-2s,first=1 -html 'my out.html'`
	if got := s.command(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := quoted("it's"); got != `'it'\''s'` {
		t.Error(got)
	}
}

func TestSweepsCanBeLeftOut(t *testing.T) {
	if _, text := pageOf(t, "-duration 200ms -seeds 1 -sweeps=false"); strings.Contains(text, "against load") {
		t.Error("there are sweeps")
	}
}

func TestEveryColourOfTheStyleIsThereInLightAndDark(t *testing.T) {
	css, err := os.ReadFile("page.css")
	if err != nil {
		t.Fatal(err)
	}
	light, rest, found := strings.Cut(string(css), "@media (prefers-color-scheme: dark)")
	dark, _, more := strings.Cut(rest, "\n}\n")
	if !found || !more {
		t.Fatal("there are no colours for dark")
	}
	for _, m := range regexp.MustCompile(`(--[a-z0-9-]+):`).FindAllStringSubmatch(light+dark, -1) {
		for scheme, colours := range map[string]string{"light": light, "dark": dark} {
			if !strings.Contains(colours, m[0]) {
				t.Errorf("%s is not in %s", m[1], scheme)
			}
		}
	}
	for _, m := range regexp.MustCompile(`var\((--[a-z0-9-]+)\)`).FindAllStringSubmatch(string(css), -1) {
		if !strings.Contains(string(css), m[1]+":") {
			t.Errorf("%s is used, and nothing sets it", m[1])
		}
	}
}
