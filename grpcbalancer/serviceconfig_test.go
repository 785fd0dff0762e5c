package grpcbalancer

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// everyField sets each field of the config.
func everyField() evenkeel.Config {
	return evenkeel.Config{
		Policy:       picker.P2C{Choices: 3, Signal: picker.LogMean},
		Keys:         []evenkeel.Key{{Header: "x-user"}, {Context: true}},
		Subset:       &subset.Config{Size: 30, Seed: 1 << 60},
		Outlier:      &outlier.Config{Mode: outlier.Soft, Interval: 3 * time.Second},
		Health:       &evenkeel.HealthConfig{Protocol: evenkeel.CheckGRPC, Service: "orders.v1.Orders"},
		SlowStart:    &evenkeel.SlowStart{Window: 30 * time.Second},
		DrainTimeout: time.Minute,
		Limit:        evenkeel.LimitConfig{Ceiling: 200, PerEndpoint: 20},
		Reports: &evenkeel.ReportsConfig{Weights: evenkeel.ReportedWeights, OutOfBand: 10 * time.Second,
			Weight: orca.WeightConfig{Blackout: time.Second, Utilization: []string{"utilization.disk"}}},
	}
}

func TestServiceConfigComesBackTheSame(t *testing.T) {
	whole := everyField()
	for i := range reflect.TypeFor[evenkeel.Config]().NumField() {
		if reflect.ValueOf(whole).Field(i).IsZero() {
			t.Fatalf("the test sets no Config.%s", reflect.TypeFor[evenkeel.Config]().Field(i).Name)
		}
	}
	for _, c := range []evenkeel.Config{{}, {Policy: picker.RoundRobin{}}, {Outlier: &outlier.Config{}}, whole} {
		text, err := ServiceConfig(c)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		var parts struct {
			LoadBalancingConfig []map[string]json.RawMessage
		}
		if err := json.Unmarshal([]byte(text), &parts); err != nil || len(parts.LoadBalancingConfig) != 1 {
			t.Fatalf("%s: %v", text, err)
		}
		if got := parse(t, string(parts.LoadBalancingConfig[0][Name])).(*lbConfig).config; !reflect.DeepEqual(got, c) {
			t.Errorf("%s\nis %+v\nwant %+v", text, got, c)
		}
		cc, err := grpc.NewClient("passthrough:///x", grpc.WithDefaultServiceConfig(text),
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		_ = cc.Close()
	}
	if text, _ := ServiceConfig(evenkeel.Config{}); text != `{"loadBalancingConfig":[{"evenkeel":{}}]}` {
		t.Errorf("the default is %s", text)
	}
}

func TestServiceConfigRefusesWhatJSONOrGRPCCannotSay(t *testing.T) {
	for want, c := range map[string]evenkeel.Config{
		"lastOnly":    {Policy: lastOnly{}},
		"P2C.Choices": {Policy: picker.P2C{Choices: 99}},
		"Cookie":      {Policy: picker.Hash{}, Keys: []evenkeel.Key{{Cookie: "c"}}},
		"Health.Port": {Health: &evenkeel.HealthConfig{Protocol: evenkeel.CheckGRPC, Port: 80}},
	} {
		text, err := ServiceConfig(c)
		if text != "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q, %v, want an error about %s", text, err, want)
		}
	}
}
