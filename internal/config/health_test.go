package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
)

func TestHealthIsRead(t *testing.T) {
	for text, want := range map[string]*evenkeel.HealthConfig{
		`{"health": null}`: nil,
		`{"health": {}}`:   {},
		`{"health": {"protocol": "tcp", "port": 8081.0, "interval": "2s", "jitter": -1, "use_unchecked": true}}`: {
			Port: 8081, Interval: 2 * time.Second, Jitter: evenkeel.NoJitter, UseUnchecked: true},
		`{"health": {"protocol": "http", "path": "/healthz", "headers": [{"name": "x", "value": "1"}, {"name": "y"}], "expect": [{"from": 200, "to": 299}, {"from": 404}]}}`: {
			Protocol: evenkeel.CheckHTTP, Path: "/healthz", Headers: []evenkeel.HeaderField{{Name: "x", Value: "1"}, {Name: "y"}},
			Expect: []evenkeel.StatusRange{{From: 200, To: 299}, {From: 404}}},
		`{"health": {"protocol": "grpc", "service": "orders.v1.Orders", "headers": [], "expect": null}}`: {
			Protocol: evenkeel.CheckGRPC, Service: "orders.v1.Orders"},
	} {
		c, report, err := Parse([]byte(text))
		if err != nil || !reflect.DeepEqual(c.Health, want) || len(report.Unknown) != 0 {
			t.Errorf("Parse(%s) = %+v, %v, %v", text, c.Health, report, err)
		}
	}
}

func TestWrongHealthIsRefused(t *testing.T) {
	for member, want := range map[string]string{
		`"protocol": "udp"`:                      `config: health.protocol is "udp", want one of tcp, http, https, grpc`,
		`"protocol": 1`:                          "config: health.protocol is 1",
		`"port": 0`:                              "config: health.port is 0, want a whole number that is not 0",
		`"port": 70000`:                          "HealthConfig.Port is 70000",
		`"interval": "0s"`:                       "config: health.interval is",
		`"jitter": 0`:                            "config: health.jitter is 0",
		`"rise": 1.5`:                            "config: health.rise is 1.5",
		`"headers": {}`:                          "config: health.headers is {}, want a list such as",
		`"headers": [null]`:                      "config: health.headers[0] is null, want an object",
		`"headers": [{"name": 1}]`:               "config: health.headers[0].name is 1, want a string",
		`"expect": [200]`:                        "config: health.expect[0] is 200, want an object",
		`"expect": [{"from": 200, "to": "299"}]`: `config: health.expect[0].to is "299"`,
		`"path": "/x"`:                           "HealthConfig.Path is set",
		`"protocol": "http", "path": "x", "fall": 0`: "config: health.fall is 0",
	} {
		c, _, err := Parse([]byte(`{"health": {` + member + `}}`))
		if err == nil || c.Health != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", member, err, want)
		}
	}
	_, report, err := Parse([]byte(`{"health": {"pth": "/", "headers": [{"nme": "x", "name": "y"}], "protocol": "http"}}`))
	if err != nil || strings.Join(report.Unknown, " ") != "health.headers[0].nme health.pth" {
		t.Errorf("unknown fields: %v, %v", report.Unknown, err)
	}
}
