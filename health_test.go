package evenkeel_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
)

func TestHealthConfigsThatWork(t *testing.T) {
	many := make([]evenkeel.StatusRange, 64)
	for i := range many {
		many[i].From = 100 + i
	}
	for _, c := range []evenkeel.HealthConfig{
		{},
		{Port: 65535, Interval: time.Hour, Timeout: time.Hour, Jitter: 1, Rise: 1000, Fall: 1000, NoTraffic: time.Hour},
		{Interval: 10 * time.Millisecond, Timeout: 1, Jitter: evenkeel.NoJitter, NoTraffic: 10 * time.Millisecond},
		{Protocol: evenkeel.CheckHTTP, Path: "/%20?a=b&c=~", Host: "[::1]:80", Expect: many},
		{Protocol: evenkeel.CheckHTTPS, Expect: []evenkeel.StatusRange{{From: 599, To: 599}}, SkipVerify: true,
			Headers: []evenkeel.HeaderField{{Name: "x", Value: "\tä "}}},
		{Protocol: evenkeel.CheckGRPC, Service: "orders.v1.Orders", Host: "orders.internal"},
	} {
		if err := (evenkeel.Config{Health: &c}).Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Each error names the field, its value and what is wanted, and all come at once.
func TestHealthConfigErrorsNameEverything(t *testing.T) {
	http := func(c evenkeel.HealthConfig) evenkeel.HealthConfig {
		c.Protocol = evenkeel.CheckHTTP
		return c
	}
	for _, tc := range []struct {
		c    evenkeel.HealthConfig
		want []string
	}{
		{evenkeel.HealthConfig{Protocol: 4}, []string{"HealthConfig.Protocol is 4, want 0 to 3"}},
		{evenkeel.HealthConfig{Port: 65536}, []string{"HealthConfig.Port is 65536, want 0 to 65535"}},
		{evenkeel.HealthConfig{Port: -1, Path: "/x", Service: "x", SkipVerify: true, Host: "x"}, []string{
			"HealthConfig.Port is -1", "HealthConfig.Path is set, want it with CheckHTTP and CheckHTTPS alone, not with tcp",
			"HealthConfig.Service is set, want it with CheckGRPC alone", "HealthConfig.SkipVerify is set, want it with CheckHTTPS alone",
			"HealthConfig.Host is set, want it with CheckHTTP, CheckHTTPS and CheckGRPC alone"}},
		{evenkeel.HealthConfig{Protocol: evenkeel.CheckGRPC, Headers: []evenkeel.HeaderField{{Name: "x"}}, Expect: []evenkeel.StatusRange{{From: 200}}},
			[]string{"HealthConfig.Headers is set", "HealthConfig.Expect is set", "not with grpc"}},
		{http(evenkeel.HealthConfig{Service: "x", SkipVerify: true}), []string{"Service is set", "SkipVerify is set"}},
		{http(evenkeel.HealthConfig{Path: "healthz"}), []string{`Path is "healthz", want printable ASCII that begins with '/'`}},
		{http(evenkeel.HealthConfig{Path: "/a b"}), []string{`Path is "/a b"`}},
		{http(evenkeel.HealthConfig{Path: "/%2"}), []string{`Path is "/%2"`}},
		{http(evenkeel.HealthConfig{Path: "/%zz"}), []string{`Path is "/%zz"`}},
		{http(evenkeel.HealthConfig{Path: "/a#b"}), []string{`Path is "/a#b"`}},
		{http(evenkeel.HealthConfig{Path: "/" + strings.Repeat("x", 2048)}), []string{"Path has 2049 bytes, want at most 2048"}},
		{http(evenkeel.HealthConfig{Host: "a/b"}), []string{`Host is "a/b", want a host`}},
		{http(evenkeel.HealthConfig{Host: strings.Repeat("a", 257)}), []string{"Host has 257 bytes"}},
		{evenkeel.HealthConfig{Protocol: evenkeel.CheckGRPC, Service: "\xff"}, []string{`Service is "\xff", want UTF-8`}},
		{evenkeel.HealthConfig{Protocol: evenkeel.CheckGRPC, Service: strings.Repeat("a", 2049)}, []string{"Service has 2049 bytes"}},
		{http(evenkeel.HealthConfig{Headers: []evenkeel.HeaderField{{Name: ""}, {Name: "a b"}, {Name: "hOst"}, {Name: "x", Value: "a\nb"}, {Name: "y", Value: strings.Repeat("a", 4097)}}}),
			[]string{`Headers[0].Name is "", want 1 to 256 letters`, `Headers[1].Name is "a b"`, `Headers[2].Name is "hOst", want none of Host,`,
				`Headers[3].Value is "a\nb", want no control characters`, "Headers[4].Value has 4097 bytes"}},
		{http(evenkeel.HealthConfig{Headers: make([]evenkeel.HeaderField, 65)}), []string{"Headers has 65 headers, want at most 64"}},
		{http(evenkeel.HealthConfig{Expect: make([]evenkeel.StatusRange, 65)}), []string{"Expect has 65 ranges, want at most 64"}},
		{http(evenkeel.HealthConfig{Expect: []evenkeel.StatusRange{{}, {From: 600}, {From: 200, To: 199}, {From: 200, To: 600}}}),
			[]string{"Expect[0].From is 0, want 100 to 599", "Expect[1].From is 600", "Expect[2].To is 199, want 0 or From, which is 200, to 599", "Expect[3].To is 600"}},
		{evenkeel.HealthConfig{Interval: time.Millisecond, Timeout: time.Hour, Jitter: math.NaN(), Rise: -1, Fall: 1001, NoTraffic: 1},
			[]string{"Interval is 1ms", "Timeout is 1h", "Jitter is NaN", "Rise is -1", "Fall is 1001", "NoTraffic is 1ns"}},
	} {
		err := (evenkeel.Config{Health: &tc.c}).Validate()
		if err == nil {
			t.Errorf("%+v is taken", tc.c)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: the error lacks %q:\n%v", tc.c, want, err)
			}
		}
	}
}

// A jitter of three intervals would make waits of less than nothing.
func TestBug42JitterOfThreeIsRefused(t *testing.T) {
	for _, jitter := range []float64{3, 1.01, -0.5, -2, math.NaN(), math.Inf(1)} {
		if err := (evenkeel.HealthConfig{Jitter: jitter}).Validate(); err == nil || !strings.Contains(err.Error(), "Jitter") {
			t.Errorf("%v: %v", jitter, err)
		}
	}
}

func TestStatusRangesHaveBothEnds(t *testing.T) {
	for _, tc := range []struct {
		r          evenkeel.StatusRange
		least, end int
	}{{evenkeel.StatusRange{From: 200, To: 299}, 200, 299}, {evenkeel.StatusRange{From: 204}, 204, 204}, {evenkeel.StatusRange{From: 204, To: 204}, 204, 204}} {
		for status := range 700 {
			if got := tc.r.Has(status); got != (status >= tc.least && status <= tc.end) {
				t.Errorf("%+v has %d: %v", tc.r, status, got)
			}
		}
	}
}

// An equal configuration of the checks changes nothing silently, another one is taken, and what the
// caller does to its lists later is no part of it.
func TestSetConfigSeesThatChecksAreOthers(t *testing.T) {
	builds, same := 0, affine{}
	same.builds = &builds
	given := &evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTP, Headers: []evenkeel.HeaderField{{Name: "a"}}, Expect: []evenkeel.StatusRange{{From: 200}}}
	p := newPool(t, evenkeel.Config{Policy: same, Health: given}, 1)
	like := func(change func(*evenkeel.HealthConfig)) *evenkeel.HealthConfig {
		c := evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTP, Headers: []evenkeel.HeaderField{{Name: "a"}}, Expect: []evenkeel.StatusRange{{From: 200}}}
		change(&c)
		return &c
	}
	given.Headers[0].Name = "b"
	for i, step := range []struct {
		health *evenkeel.HealthConfig
		taken  int
	}{
		{like(func(*evenkeel.HealthConfig) {}), 0},
		{given, 1},
		{like(func(c *evenkeel.HealthConfig) { c.Headers = nil }), 1},
		{like(func(c *evenkeel.HealthConfig) { c.Headers = []evenkeel.HeaderField{} }), 0},
		{like(func(c *evenkeel.HealthConfig) { c.Headers, c.Expect[0].To = nil, 201 }), 1},
		{like(func(c *evenkeel.HealthConfig) { c.Headers, c.Expect[0].To, c.Rise = nil, 201, 1 }), 1},
		{nil, 1},
		{nil, 0},
	} {
		builds = 0
		if err := p.SetConfig(evenkeel.Config{Policy: same, Health: step.health}); err != nil || builds != step.taken {
			t.Errorf("step %d: %d builds, %v, want %d", i, builds, err, step.taken)
		}
	}
}

// Who waits for its first check gets nothing, and is missed by nobody: not by a panic, and not by a
// subset that has enough.
func TestUncheckedMemberGetsNothingAndCountsNowhere(t *testing.T) {
	check := func(id string, s evenkeel.State) evenkeel.StateChange {
		return evenkeel.StateChange{ID: id, State: s, Source: evenkeel.Checks}
	}
	for _, tc := range allPolicies {
		c := newTraffic(t, evenkeel.Config{Policy: tc.policy, Outlier: &outlier.Config{}}, 10)
		var list []evenkeel.StateChange
		for _, m := range members(10)[3:] {
			list = append(list, check(m.ID, evenkeel.Unchecked))
		}
		c.pool.SetStates(list)
		c.send(2*time.Second, 5*time.Millisecond)
		for i := range 10 {
			if got := c.sent[i] > 0; got != (i < 3) {
				t.Errorf("%s: e%d got %d requests", tc.name, i, c.sent[i])
			}
		}
		s := c.pool.StatsAt(c.now)
		if e := c.stats("e5"); s.Panicking || s.Ready != 3 || e.State != evenkeel.Unchecked || !slices.Equal(e.Reasons(), []string{"unchecked (checks)"}) {
			t.Errorf("%s: panicking %v, %d ready, %+v", tc.name, s.Panicking, s.Ready, e)
		}
		c.pool.SetStates([]evenkeel.StateChange{check("e5", evenkeel.Ready), check("e6", evenkeel.Failing)})
		c.send(5*time.Second, 5*time.Millisecond)
		if c.sent[5] == 0 || c.sent[6] != 0 || c.sent[7] != 0 {
			t.Errorf("%s: after their checks, %v", tc.name, c.sent)
		}
	}
}

func TestHealthNames(t *testing.T) {
	for p, want := range map[evenkeel.HealthProtocol]string{evenkeel.CheckTCP: "tcp", evenkeel.CheckHTTP: "http", evenkeel.CheckHTTPS: "https", evenkeel.CheckGRPC: "grpc", 4: "invalid"} {
		if p.String() != want {
			t.Errorf("%d is %q", p, p)
		}
	}
	if evenkeel.Unchecked.String() != "unchecked" || evenkeel.Draining.String() != "draining" {
		t.Errorf("states are called %v and %v", evenkeel.Unchecked, evenkeel.Draining)
	}
}
