package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/picker"
)

// words splits a command line at blanks.
func words(line string) []string { return strings.Fields(line) }

// wrongFlags are command lines and parts of what is said of them.
var wrongFlags = map[string]string{
	"-endpoints 0":                    `-endpoints is "0", want a whole number from 1 to 10000`,
	"-endpoints 1.5":                  `-endpoints is "1.5", want a whole number`,
	"-endpoints 99999999999999999999": `-endpoints is "99999999999999999999", want`,
	"-concurrency -1":                 `-concurrency is "-1", want a whole number from 0`,
	"-rate -5":                        `-rate is "-5", want a number from 1e-06`,
	"-rate NaN":                       `-rate is "NaN", want a number`,
	"-rate Inf":                       `-rate is "Inf", want a number`,
	"-rate 1e9":                       `-rate is "1e9", want what makes at most 10,000,000 requests`,
	"-duration 8h":                    `-duration is "8h", want what makes at most 10,000,000 requests`,
	"-utilisation 0":                  `-utilisation is "0", want a number from 0.001 to 10`,
	"-utilisation -70%":               `-utilisation is "-70%", want a number from 0.001 to 10`,
	"-utilisation nan":                `-utilisation is "nan", want a number from 0.001 to 10`,
	"-rate 5 -utilisation 0.5":        `-rate is "5", want it or -utilisation 0.5, not both`,
	"-concurrency 0":                  `-utilisation is "0.7" by default, want -rate instead`,
	"-service fixed:0s":               `-utilisation is "0.7" by default, want -rate instead`,
	"-sharing -concurrency 0 -rate 9": `-sharing is "true", want false with -concurrency 0`,
	"-sharing=maybe":                  `-sharing is "maybe", want true or false`,
	"-speeds 9x0.5":                   `-speeds is "9x0.5", want none, or COUNTxSPEED of up to 8 endpoints`,
	"-speeds 5x0.5,4x2":               `-speeds is "5x0.5,4x2", want speeds of at most 8 endpoints`,
	"-speeds 1x1/0":                   `-speeds is "1x1/0", want none, or COUNTxSPEED`,
	"-speeds 2x-1":                    `-speeds is "2x-1", want none, or COUNTxSPEED`,
	"-service gauss:5ms":              `-service is "gauss:5ms", want a law: exponential:MEAN`,
	"-service exponential:5":          `-service is "exponential:5", want exponential:MEAN: "5" is no time`,
	"-service exponential:-5ms":       `-service is "exponential:-5ms", want other parameters: Exponential.MeanTime is -5ms`,
	"-service uniform:5ms":            `-service is "uniform:5ms", want uniform:LOW,HIGH`,
	"-service uniform:5ms,1ms":        `want other parameters: Uniform.High is 1ms, want 5ms to`,
	"-service bimodal:1ms,2ms,x":      `-service is "bimodal:1ms,2ms,x", want bimodal:SHORT,LONG,SHARE: "x" is no number`,
	"-service pareto:1ms,NaN,1s":      `want pareto:LEAST,ALPHA,CAP: "NaN" is no number`,
	"-service quantiles:0=1ms,5":      `want quantiles:0=TIME,PART=TIME,…,1=TIME: "5" is none`,
	"-service quantiles:0=1ms,.5=2ms": `want other parameters: Quantiles has not both ends`,
	"-mean -1s":                       `-mean is "-1s", want a time from 1ns`,
	"-arrivals sometimes":             `-arrivals is "sometimes", want poisson, even, bursts or closed`,
	"-users 5":                        `-users is "5", want it only with -arrivals closed`,
	"-think 5s":                       `-think is "5s", want it only with -arrivals closed`,
	"-on 5ms":                         `-on is "5ms", want it only with -arrivals bursts`,
	"-arrivals bursts -on 2s":         `-on is "2s", want at most -period, 1s`,
	"-arrivals closed -rate 5":        `-rate is "5", want -users instead`,
	"-arrivals closed -users 0":       `-users is "0", want a whole number from 1`,
	"-streams 2":                      `-streams is "2", want a number from 0 to 1`,
	"-stream-kind x -streams 0.1":     `-stream-kind is "x", want stream, unary or unknown`,
	"-stream-time fixed:1s":           `-stream-time is "fixed:1s", want it only with -streams above 0`,
	"-slow 40s-20s":                   `-slow is "40s-20s", want FROM-UNTIL first`,
	"-slow 20s-40s,by=0":              `-slow is "20s-40s,by=0", want by=0.001 to 1000000`,
	"-slow 20s-40s,bye=3":             `-slow is "20s-40s,bye=3", want FROM-UNTIL with any of by=, to=, first=, last=, at=, not "bye=3"`,
	"-hang 20s-40s,by=3":              `-hang is "20s-40s,by=3", want FROM-UNTIL with any of first=, last=, at=, not "by=3"`,
	"-drain last=9":                   `-drain is "last=9", want last=1 to 8, the number of endpoints`,
	"-drain last=1,at=2":              `-drain is "last=1,at=2", want one of first=, last= and at=`,
	"-fail share=0":                   `-fail is "share=0", want share= above 0, up to 1`,
	"-fail share=NaN":                 `-fail is "share=NaN", want share= above 0, up to 1`,
	"-fail as=canceled":               `-fail is "as=canceled", want as=failure, unreached or overload`,
	"-fail after=-1s":                 `-fail is "after=-1s", want after=0s to 1h`,
	"-cold 70s-80s":                   `-cold is "70s-80s", want an incident that begins before the end of -duration, 1m0s`,
	"-slow 1s- -slow x":               `-slow is "x", want FROM-UNTIL first`,
	"-clients 0":                      `-clients is "0", want a whole number from 1 to 10000`,
	"-clients 9000 -endpoints 9000":   `-clients is "9000", want clients times -endpoints to be at most 2,000,000`,
	"-delay -1ms":                     `-delay is "-1ms", want a time from 0s to 1h`,
	"-timeout x":                      `-timeout is "x", want a time from`,
	"-arrivals bursts -on 1us":        `-on is "1us", want a part of -period in which at most 10,000,000 requests a second`,
	"-duration 900h -rate 0.1":        `-duration is "900h", want -clients times -endpoints times its seconds to be at most 200,000,000`,
	"-refresh 1ns":                    `-refresh is "1ns", want 0s or at least 240.001µs`,
	"-policies least_table@1us":       `-policies is "least_table@1us", want an age of 0s or of at least 6.001µs`,
	"-refresh 1us -duration 1m -clients 1 -endpoints 1": `-refresh is "1us", want 0s or at least 6.001µs`,
	"-refresh 1ns -duration 1ms -clients 1 -warmup 0s":  `-refresh is "1ns", want 0s or at least 1µs`,
	"-policies p2c_table@5us -endpoints 1":              `-policies is "p2c_table@5us", want an age of 0s or of at least 6.001µs`,
	"-refresh -1s":                                      `-refresh is "-1s", want a time from`,
	"-policies best":                                    `-policies is "best", want JSON in braces, or one of default, random`,
	"-policies ,":                                       `-policies is ",", want 1 to 6 policies`,
	"-policies p2c,p2c":                                 `-policies is "p2c", want each policy once`,
	"-policies p2c_table@x":                             `-policies is "p2c_table@x", want a policy: age of policy`,
	`-policies {"p2c":{"choices":9}}`:                   "-policies is `{\"p2c\":{\"choices\":9}}`, want choices up to 8, the number of -endpoints, not 9",
	`-policies {"p2c":{"choices":99}}`:                  `want a valid policy: P2C.Choices is 99, want 2 to 10`,
	`-policies {"p2c":{"choice":3}}`:                    `policy.p2c.choice is not a known field`,
	`-policies {"p2c":`:                                 `want JSON such as`,
	"-bound best":                                       `-bound is "best", want jsed, jsq or none`,
	"-preset sunny":                                     `-preset is "sunny", want list, or one of slow-backend, fail-fast`,
	"-duration 0s":                                      `-duration is "0s", want a time from 1ms`,
	"-warmup 60s":                                       `-warmup is "60s", want less than -duration, 1m0s`,
	"-seeds 0":                                          `-seeds is "0", want a whole number from 1 to 1000`,
	"-seed -1":                                          `-seed is "-1", want a whole number from 0`,
	"-sweep-seeds -1":                                   `-sweep-seeds is "-1", want a whole number from 0`,
	"-step 1ms":                                         `-step is "1ms", want 0 or from 120ms to 1m0s`,
	"-html /no/such/folder/x.html":                      `-html is "/no/such/folder/x.html", want a file that can be written`,
	"-html .":                                           `-html is ".", want a file that can be written: is a directory`,
	"-html -":                                           `-html is "-", want a file that can be written, /dev/stdout being one`,
	"-html=":                                            `-html is "", want a value, as in -html FILE, or not the flag`,
	"-preset=":                                          `-preset is "", want a value, as in -preset NAME`,
	"-rate=":                                            `-rate is "", want a value, as in -rate R`,
	"-mean=":                                            `-mean is "", want a value, as in -mean D`,
	"-slow=":                                            `-slow is "", want a value, as in -slow SPEC`,
	"-policies=":                                        `-policies is "", want 1 to 6 policies`,
	"-seeds 2 -seeds 3":                                 `-seeds is "2" and "3", want it once`,
	"-preset bursts -preset overload":                   `-preset is "bursts" and "overload", want it once`,
	"-slow by=3,by=4":                                   `-slow is "by=3,by=4", want by= once`,
	"-mean 1ns -duration 1ms -warmup 0s":                `-mean is "1ns", want what makes at most 1,000,000,000 requests a second, not 5.6e+09`,
	"-mean 1ns":                                         `-mean is "1ns", want what makes at most 10,000,000 requests`,
	"-nonsense 5":                                       `flag provided but not defined: -nonsense`,
	"slow-backend":                                      `there is an argument "slow-backend", want flags alone`,
	"-preset heterogeneous -endpoints 3":                `-speeds is "5x1/3" by the preset heterogeneous, want`,
}

func TestAWrongFlagIsNamedWithItsValueAndWhatIsAllowed(t *testing.T) {
	for line, want := range wrongFlags {
		_, err := parseFlags(words(line))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n  %v\nwant\n  %s", line, err, want)
		}
	}
}

// In a closed loop, only answers keep users from asking again.
func TestAClosedLoopOfTooManyRequestsIsRefused(t *testing.T) {
	const times = "more than 0s where an answer may take no time at all"
	for line, want := range map[string]string{
		"-hang 0s- -timeout 1ns":                                    `-users is "50", want what makes at most`,
		"-timeout 1us -delay 0s":                                    `-users is "50", want what makes at most`,
		"-service bimodal:1ns,1000h,1e-9 -delay 0s":                 `-users is "50", want what makes at most`,
		"-service fixed:100us -slow 0s-,by=0.001 -delay 0s":         `-users is "50", want what makes at most`,
		"-service fixed:100us -slow 0s-,by=10,to=0.001 -delay 0s":   `-users is "50", want what makes at most`,
		"-streams 1 -stream-time fixed:1ns -delay 0s":               `-users is "50", want what makes at most`,
		"-fail 0s-,after=1ns,share=0.9999 -delay 0s -service fixed": `-users is "50", want what makes at most`,
		"-duration 10h -cold 9h-,last=8 -clients 1":                 `-users is "50", want what makes at most`,
		"-fail 0s-,after=0s,share=0.5 -delay 0s":                    times,
		"-service fixed:0s -delay 0s":                               times,
		"-fail 0s-,after=0s,share=0.5 -delay 0s -think 10ms":        "",
		"-service fixed:1ms -timeout 500us":                         "",
		"-cold 9s-,last=8":                                          "",
	} {
		_, err := parseFlags(append(words("-arrivals closed -users 50"), words(line)...))
		if err == nil != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// A run goes on until the last answer, and clients with it.
func TestAnswersThatTakeForEverAreRefused(t *testing.T) {
	for line, refused := range map[string]bool{
		"-rate 100 -service fixed:1000h -duration 1s -warmup 0s":                   true,
		"-rate 100 -service fixed:1000h -duration 1s -warmup 0s -timeout 1m":       false,
		"-rate 100 -streams 0.5 -stream-time fixed:1000h":                          true,
		"-arrivals closed -service pareto:1ns,0.1,1000h -duration 50ms -warmup 0s": true,
		"-slow 0s-,by=1e6":     true,
		"-slow 20s-40s,by=1e6": false,
		"-slow 20s-40s,by=10,to=1e6 -service fixed:1s -rate 5": true,
		"-mean 1h":                          false, // one request in some minutes
		"-preset heavy-tail -utilisation 2": false,
		"-duration 50ms -warmup 0s -speeds 1x10000,1x0.0001": true,
		"-utilisation 10": false,
	} {
		_, err := parseFlags(words(line))
		if got := err != nil && strings.Contains(err.Error(), "a time after which nobody waits"); got != refused || err != nil && !got {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestMessagesDoNotRepeatLongValues(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", 1e5), strings.Repeat(`{"ä":`, 1e4)} {
		if _, err := parseFlags([]string{"-policies", text}); err == nil || len(err.Error()) > 1500 {
			t.Errorf("%d bytes give %.300v", len(text), err)
		}
	}
}

func TestAMistakeIsNoReasonForAnother(t *testing.T) {
	_, err := parseFlags(words("-concurrency 1e9"))
	if err == nil || strings.Contains(err.Error(), "-utilisation") {
		t.Error(err)
	}
}

func TestAPipeIsNotOpenedBeforeThePageIsThere(t *testing.T) {
	pipe, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer end.Close()
	name := fmt.Sprintf("/dev/fd/%d", end.Fd())
	if _, err := os.Stat(name); err != nil {
		t.Skip("no names for open files:", err)
	}
	if _, err := parseFlags([]string{"-html", name}); err != nil {
		t.Error(err)
	}
}

func TestAllProblemsAreToldAtOnce(t *testing.T) {
	_, err := parseFlags(words("-rate -5 -endpoints 0 -nonsense 7 -policies worst -preset none stray -seeds x -slow 5"))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"-rate", "-endpoints", "-nonsense", "-policies", "-preset", "stray", "-seeds", "-slow"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nsays nothing of %s", err, want)
		}
	}
}

func TestWhatCannotBeWrittenIsFoundBeforeAnythingRuns(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "out.html")
	if _, err := parseFlags([]string{"-html", file}); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("looking at the file left %v, %v", left, err)
	}
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := parseFlags([]string{"-html", file, "-rate", "-1"}); err == nil {
		t.Error("no error")
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

func TestFlagsOverrideAPreset(t *testing.T) {
	s, err := parseFlags(words("-preset slow-backend -utilisation 80% -clients 7 -slow none -hang 1s-2s,first=2"))
	if err != nil {
		t.Fatal(err)
	}
	sc := s.fleet()
	if load := sc.Load(); load < 0.7999 || load > 0.8001 {
		t.Errorf("load %v", load)
	}
	if sc.Balancers != 7 || len(sc.Servers) != 8 || sc.WarmUp != 0 {
		t.Errorf("%d clients, %d endpoints, warm-up %v", sc.Balancers, len(sc.Servers), sc.WarmUp)
	}
	for i, v := range sc.Servers {
		if got := len(v.Phases) == 1 && v.Phases[0].Hang; got != (i < 2) {
			t.Errorf("endpoint %d has %v", i, v.Phases)
		}
	}
}

func TestTimesOfAPresetStretchWithTheDuration(t *testing.T) {
	s, err := parseFlags(words("-preset slow-backend -duration 6s"))
	if err != nil {
		t.Fatal(err)
	}
	if p := s.fleet().Servers[7].Phases[0]; p.From != 2*time.Second || p.Until != 4*time.Second {
		t.Errorf("slow from %v to %v", p.From, p.Until)
	}
	if s, err = parseFlags(words("-duration 6s")); err != nil || s.warmUp != time.Second {
		t.Errorf("warm-up %v, %v", s.warmUp, err)
	}
	s, err = parseFlags(words("-preset slow-backend -duration 6s -slow 1s-"))
	if err != nil {
		t.Fatal(err)
	}
	if p := s.fleet().Servers[7].Phases[0]; p.From != time.Second || p.Until != forever {
		t.Errorf("slow from %v to %v", p.From, p.Until)
	}
}

func TestIncidentsSayWhatHappensToWhom(t *testing.T) {
	s, err := parseFlags(words("-endpoints 4 -slow 10s-30s,by=3,to=1 -fail 1s-2s,after=5ms,share=30%,as=overload,first=1 " +
		"-cold 20s-40s,by=4,at=2 -drain last=2"))
	if err != nil {
		t.Fatal(err)
	}
	ms := time.Millisecond
	want := [][]sim.Phase{
		{{From: time.Second, Until: 2 * time.Second, Fail: picker.Overload, FailAfter: 5 * ms, FailShare: 0.3}},
		{{Until: 20 * time.Second, Absent: true}, {From: 20 * time.Second, Until: 40 * time.Second, Slow: 4}},
		{{From: 20 * time.Second, Until: 40 * time.Second, Drained: true}},
		{
			{From: 10 * time.Second, Until: 30 * time.Second, Slow: 3, SlowEnd: 1},
			{From: 20 * time.Second, Until: 40 * time.Second, Drained: true},
		},
	}
	for i, v := range s.fleet().Servers {
		if fmt.Sprint(v.Phases) != fmt.Sprint(want[i]) {
			t.Errorf("endpoint %d: %+v, want %+v", i+1, v.Phases, want[i])
		}
	}
}

func TestPoliciesComeAsNamesOrJSON(t *testing.T) {
	line := `default p2c,p2c_table@20ms {"p2c": {"choices": 3, "signal": "in_flight"}} {"policy": {"least": {}}}, edf`
	s, err := parseFlags([]string{"-policies", line})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range s.policies {
		names = append(names, p.Name)
	}
	want := "default p2c p2c_table@20ms p2c{choices:3,signal:in_flight} least edf"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := s.policies[3].Config.Policy; got != (picker.P2C{Choices: 3, Signal: picker.InFlight}) {
		t.Errorf("the JSON gives %#v", got)
	}
}

func TestLawsHaveTheMeanThatIsAskedFor(t *testing.T) {
	for _, name := range []string{"exponential", "fixed", "uniform", "lognormal", "bimodal", "pareto", "lognormal:1s,0.5", "quantiles:0=1ms,1=3ms"} {
		s, err := parseFlags([]string{"-service", name, "-mean", "25ms"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if m := s.service.Mean() / 1e6; m < 24.99 || m > 25.01 {
			t.Errorf("%s has the mean %v ms", name, m)
		}
		if strings.Contains(name, ":") {
			continue
		}
		if s, err = parseFlags([]string{"-service", name}); err != nil || s.service.Mean() < 9.99e6 || s.service.Mean() > 10.01e6 {
			t.Errorf("%s alone has the mean %v, %v", name, s.service.Mean(), err)
		}
	}
}

func TestHelpAndListAreNoProblems(t *testing.T) {
	for _, line := range []string{"-h", "-help", "-rate -5 -h"} {
		if _, err := parseFlags(words(line)); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if _, err := parseFlags(words("-preset list")); !errors.Is(err, errList) {
		t.Error(err)
	}
}
