package grpcbalancer

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/balancer"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// lastOnly is a policy of a user's own, which cannot be compared and has no JSON form: it
// picks the endpoint with the greatest ID.
type lastOnly struct{ _ []int }

func (lastOnly) Validate() error    { return nil }
func (lastOnly) Needs() picker.Need { return 0 }

// Build implements picker.Policy.
func (p lastOnly) Build(*picker.Members, picker.Picker) picker.Picker { return p }

// Pick implements picker.Picker.
func (lastOnly) Pick(s *picker.Snapshot, _ picker.Request, _ int64) int {
	last := s.At(0)
	for k := range s.Len() {
		if i := s.At(k); s.Record(i).ID() > s.Record(last).ID() {
			last = i
		}
	}
	return last
}

// Names that the tests' init registers, or tries to.
const (
	lastName   = "evenkeel_test_last"
	signalName = "evenkeel_test_signal"
)

// registered are the errors of that.
var registered = map[string]error{}

func init() {
	for name, c := range map[string]evenkeel.Config{
		lastName:   {Policy: lastOnly{}},
		signalName: {Policy: picker.P2C{Signal: byID{}, Choices: 3}},
		"":         {},
		"Mixed/Up": {Policy: picker.P2C{Choices: 99}},
		Name:       {Policy: picker.Random{}},
	} {
		registered[name] = Register(name, c)
	}
	registered["again"] = Register(lastName, evenkeel.Config{})
}

// byID is a signal of a user's own: it prefers the endpoint with the greatest ID.
type byID struct{}

// Needs implements picker.Signal.
func (byID) Needs() picker.Need { return 0 }

// Cost implements picker.Signal.
func (byID) Cost(r *picker.Record, _ int64) (cost int64) {
	for _, b := range []byte(r.ID()[max(len(r.ID())-7, 0):]) {
		cost = cost<<8 - int64(b)
	}
	return cost
}

func TestRegisterRefusesNamesAndConfigsNamingAllThatIsWrong(t *testing.T) {
	for name, want := range map[string][]string{
		lastName:   nil,
		signalName: nil,
		"":         {`grpcbalancer: name is "", want one that is not empty`},
		"Mixed/Up": {
			`grpcbalancer: name is "Mixed/Up", want it in lower case`,
			`grpcbalancer: name is "Mixed/Up", want one without '/'`,
			`grpcbalancer: config of "Mixed/Up": picker: P2C.Choices is 99`,
		},
		Name:    {`grpcbalancer: name is "evenkeel", want one that no policy has`},
		"again": {`grpcbalancer: name is "evenkeel_test_last", want one that no policy has`},
	} {
		err := registered[name]
		if (err == nil) != (want == nil) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
		for _, w := range want {
			if err != nil && !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %v\nwant %q in it", name, err, w)
			}
		}
	}
	if balancer.Get("mixed/up") != nil || balancer.Get("Mixed/Up") != nil || balancer.Get("") != nil {
		t.Error("what was refused is registered")
	}
	if b := balancer.Get(lastName); b == nil || b.Name() != lastName {
		t.Errorf("balancer.Get: %v", b)
	}
}

// inForce parses a text as a config of a registered policy.
func inForce(t *testing.T, name, text string) loadBalancingConfig {
	t.Helper()
	c, err := balancer.Get(name).(balancer.ConfigParser).ParseConfig([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

func TestRegisteredConfigIsTheBaseThatJSONOverrides(t *testing.T) {
	for _, text := range []string{"", "null", "{}", `{"policy": null}`, `{"a_newer_field": 1}`} {
		first := inForce(t, lastName, text)
		again, err := json.Marshal(first)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for _, c := range []loadBalancingConfig{first, inForce(t, lastName, string(again))} {
			if got := c.(*lbConfig).config; !reflect.DeepEqual(got, evenkeel.Config{Policy: lastOnly{}}) {
				t.Errorf("%q: %+v, want the base", text, got)
			}
		}
	}
	const text = `{"policy": {"p2c": {"choices": 4}}}`
	first := inForce(t, lastName, text)
	again, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []loadBalancingConfig{first, inForce(t, lastName, string(again))} {
		if got := c.(*lbConfig).config; !reflect.DeepEqual(got, evenkeel.Config{Policy: picker.P2C{Choices: 4}}) {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if _, err := balancer.Get(lastName).(balancer.ConfigParser).ParseConfig([]byte(`{"policy": "fastest"}`)); err == nil {
		t.Error("a wrong override was taken")
	}
}

// A field that evenkeel.Config gets has to be overridden, too.
func TestEveryFieldOfTheConfigCanBeOverridden(t *testing.T) {
	base := evenkeel.Config{Policy: picker.Random{}, Keys: []evenkeel.Key{{Path: true}}, Subset: &subset.Config{Size: 3},
		Outlier: &outlier.Config{AtLeastOne: true}, Health: &evenkeel.HealthConfig{Port: 3},
		SlowStart: &evenkeel.SlowStart{Window: 3}, DrainTimeout: 3, Limit: evenkeel.LimitConfig{Floor: 3},
		Reports: &evenkeel.ReportsConfig{OutOfBand: 3}}
	given := evenkeel.Config{Policy: picker.RoundRobin{}, Keys: []evenkeel.Key{{Header: "x"}}, Subset: &subset.Config{Size: 4},
		Outlier: &outlier.Config{}, Health: &evenkeel.HealthConfig{Port: 4},
		SlowStart: &evenkeel.SlowStart{Window: 4}, DrainTimeout: 4, Limit: evenkeel.LimitConfig{Floor: 4},
		Reports: &evenkeel.ReportsConfig{OutOfBand: 4}}
	for i := range reflect.TypeFor[evenkeel.Config]().NumField() {
		if reflect.ValueOf(base).Field(i).IsZero() || reflect.ValueOf(given).Field(i).IsZero() {
			t.Fatalf("the test sets no Config.%s", reflect.TypeFor[evenkeel.Config]().Field(i).Name)
		}
	}
	if got := override(base, evenkeel.Config{}); !reflect.DeepEqual(got, base) {
		t.Errorf("%+v, want the base", got)
	}
	if got := override(base, given); !reflect.DeepEqual(got, given) {
		t.Errorf("%+v, want what was given", got)
	}
}

// Who hands over no config gets the base.
func TestRegisteredPolicyWithoutAConfig(t *testing.T) {
	c := newFakeChannel()
	p := balancer.Get(lastName).Build(c, balancer.BuildOptions{}).(*policy)
	defer p.Close()
	if err := p.UpdateClientConnState(stateOf(each("a", "c", "b"))); err != nil {
		t.Fatal(err)
	}
	c.pump()
	for range 10 {
		result, err := c.latest().Picker.Pick(balancer.PickInfo{Ctx: context.Background()})
		if err != nil {
			t.Fatal(err)
		}
		if addr := result.SubConn.(*fakeConn).addr; addr != "c" {
			t.Fatalf("picked %s, want c", addr)
		}
		result.Done(succeeded)
	}
}

// random_subsetting marshals the config of its child, which has no JSON form.
func TestRegisteredPoliciesServeBelowAParent(t *testing.T) {
	for _, c := range []struct {
		name, config string
		servers      int // that get calls
	}{
		{lastName, `{}`, 1},
		{signalName, `{}`, 1},
		{lastName, `{"policy": "round_robin"}`, 3},
	} {
		t.Run(c.name+c.config, func(t *testing.T) {
			servers := fleet(t, 3)
			cl := dial(t, fmt.Sprintf(`{"loadBalancingConfig": [{"random_subsetting_experimental": {"subsetSize": 3,
				"childPolicy": [{%q: %s}]}}]}`, c.name, c.config))
			cl.resolver.InitialState(endpointsOf(servers...))
			// While connections come up, calls go to those there are.
			eventually(t, "the policy is that of the config", func() bool {
				calls := map[string]int64{}
				for _, s := range servers {
					calls[s.addr] = -s.calls.Load()
				}
				cl.calls(30)
				served := 0
				for _, s := range servers {
					if calls[s.addr] += s.calls.Load(); calls[s.addr] > 0 {
						served++
					}
				}
				last := slices.Max(slices.Collect(maps.Keys(calls)))
				return served == c.servers && calls[last] == int64(30/c.servers)
			})
		})
	}
}
