package config

import (
	"go/importer"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
	"github.com/evenkeel/evenkeel/subset"
)

// TestEveryFieldRoundTrips sets one exported field at a time, of the config and of each policy that
// has a JSON form, and expects it back. It fails for a field that no list knows.
func TestEveryFieldRoundTrips(t *testing.T) {
	for _, form := range policies() {
		zero := form.read(&decoder{}, "", []byte("{}"))
		roundTrip(t, evenkeel.Config{Policy: zero})
		for _, p := range filled(t, reflect.TypeOf(zero)) {
			roundTrip(t, evenkeel.Config{Policy: p.Interface().(evenkeel.Policy)})
		}
	}
	for _, c := range filled(t, reflect.TypeFor[evenkeel.Config]()) {
		roundTrip(t, c.Interface().(evenkeel.Config))
	}
}

func roundTrip(t *testing.T, c evenkeel.Config) {
	t.Helper()
	text, err := Marshal(c)
	if err != nil {
		t.Errorf("Marshal(%#v): %v", c, err)
		return
	}
	got, report, err := Parse(text)
	if err != nil || len(report.Unknown) != 0 || !reflect.DeepEqual(got, c) {
		t.Errorf("%#v does not survive: as %s it reads back as %#v, %v, %v", c, text, got, report, err)
	}
}

// filled returns values of the struct type typ, each with one exported field, at any depth, that is
// not zero.
func filled(t *testing.T, typ reflect.Type) []reflect.Value {
	t.Helper()
	var all []reflect.Value
	for i := range typ.NumField() {
		f := typ.Field(i)
		if !f.IsExported() {
			continue
		}
		values := nonZero(t, f.Type)
		if len(values) == 0 {
			t.Errorf("%s.%s: the test has no value of type %s; teach nonZero one", typ, f.Name, f.Type)
			continue
		}
		valid := 0
		for _, v := range values {
			s := reflect.New(typ).Elem()
			s.Field(i).Set(v)
			if c, ok := s.Interface().(interface{ Validate() error }); ok && c.Validate() != nil {
				continue
			}
			valid++
			all = append(all, s)
		}
		if valid == 0 {
			t.Errorf("%s.%s: none of the test's values is valid; teach nonZero one", typ, f.Name)
		}
	}
	return all
}

// nonZero returns values of type typ that are valid in a config and not zero.
func nonZero(t *testing.T, typ reflect.Type) []reflect.Value {
	t.Helper()
	if typ == reflect.TypeFor[subset.Config]() {
		return subsets(t)
	}
	if typ == reflect.TypeFor[evenkeel.HealthConfig]() {
		return healths(t)
	}
	if typ == reflect.TypeFor[outlier.Percent]() {
		// An explicit 0 is not the zero value; as one may be out of the field's bounds, more.
		return []reflect.Value{reflect.ValueOf(outlier.PercentOf(0)), reflect.ValueOf(outlier.PercentOf(12.5)), reflect.ValueOf(outlier.PercentOf(80))}
	}
	if typ == reflect.TypeFor[orca.WeightConfig]() {
		return weightConfigs()
	}
	switch typ.Kind() {
	case reflect.Struct:
		return filled(t, typ)
	case reflect.Pointer:
		// A pointer to a zero value differs from nil: it switches something on.
		values := []reflect.Value{reflect.New(typ.Elem())}
		for _, v := range nonZero(t, typ.Elem()) {
			p := reflect.New(typ.Elem())
			p.Elem().Set(v)
			values = append(values, p)
		}
		return values
	case reflect.Slice:
		var values []reflect.Value
		for _, v := range nonZero(t, typ.Elem()) {
			values = append(values, reflect.Append(reflect.Zero(typ), v))
		}
		return values
	case reflect.String:
		return []reflect.Value{reflect.ValueOf("name").Convert(typ)}
	case reflect.Bool:
		return []reflect.Value{reflect.ValueOf(true).Convert(typ)}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint32, reflect.Uint64,
		reflect.Float64:
		// Several, as one may be out of the field's bounds.
		values := []reflect.Value{reflect.ValueOf(3).Convert(typ), reflect.ValueOf(1).Convert(typ)}
		switch typ {
		case reflect.TypeFor[int]():
			values = append(values, reflect.ValueOf(251))
		case reflect.TypeFor[time.Duration]():
			values = append(values, reflect.ValueOf(time.Minute))
		}
		return values
	case reflect.Interface:
		return implementations(t, typ)
	}
	return nil
}

// subsets are configs whose fields are not zero in the ways that they can be together.
func subsets(t *testing.T) (values []reflect.Value) {
	t.Helper()
	list := []subset.Config{
		{Size: 7}, {Seed: 1<<64 - 1}, {MinAvailable: -1}, {MinAvailable: 3}, {LotSize: 16},
		{ClientIndex: subset.IndexOf(0)}, {ClientIndex: subset.IndexOf(3), ClientCount: 4},
		{ClientIndex: subset.IndexFromEnv("POD_INDEX")}, {ClientIndex: subset.IndexFromHost()},
		{MaxSize: 50, LoadPerEndpoint: 12.5},
	}
	for _, a := range algorithms {
		list = append(list, subset.Config{Algorithm: a.value, ClientIndex: subset.IndexOf(1), ClientCount: 2})
	}
	typ := reflect.TypeFor[subset.Config]()
	for i := range typ.NumField() {
		if !slices.ContainsFunc(list, func(c subset.Config) bool { return !reflect.ValueOf(c).Field(i).IsZero() }) {
			t.Errorf("no subset has %s; teach subsets one", typ.Field(i).Name)
		}
	}
	for _, c := range list {
		values = append(values, reflect.ValueOf(c))
	}
	return values
}

// healths are configs of health checks whose fields are not zero in the ways that they can be together.
func healths(t *testing.T) (values []reflect.Value) {
	t.Helper()
	list := []evenkeel.HealthConfig{
		{Port: 8081}, {Interval: time.Second}, {Timeout: time.Second}, {Jitter: 0.5}, {Jitter: evenkeel.NoJitter}, {Rise: 3}, {Fall: 1},
		{UnexpectedAtOnce: true}, {NoTraffic: time.Minute}, {UseUnchecked: true},
		{Protocol: evenkeel.CheckHTTP, Path: "/healthz?deep=1", Host: "orders.internal"},
		{Protocol: evenkeel.CheckHTTP, Headers: []evenkeel.HeaderField{{Name: "x-a", Value: "1"}, {Name: "x-b"}}},
		{Protocol: evenkeel.CheckHTTPS, Expect: []evenkeel.StatusRange{{From: 200, To: 299}, {From: 404}}, SkipVerify: true},
		{Protocol: evenkeel.CheckGRPC, Service: "orders.v1.Orders"},
	}
	for _, p := range healthProtocols {
		list = append(list, evenkeel.HealthConfig{Protocol: p.value, Rise: 1})
	}
	typ := reflect.TypeFor[evenkeel.HealthConfig]()
	for i := range typ.NumField() {
		if !slices.ContainsFunc(list, func(c evenkeel.HealthConfig) bool { return !reflect.ValueOf(c).Field(i).IsZero() }) {
			t.Errorf("no health check has %s; teach healths one", typ.Field(i).Name)
		}
	}
	for _, c := range list {
		values = append(values, reflect.ValueOf(c))
	}
	return values
}

// implementations returns values for fields of an interface type.
func implementations(t *testing.T, typ reflect.Type) []reflect.Value {
	t.Helper()
	var values []reflect.Value
	add := func(v any) {
		if reflect.TypeOf(v).Implements(typ) {
			values = append(values, reflect.ValueOf(v))
		}
	}
	for _, form := range policies() {
		add(form.read(&decoder{}, "", []byte("{}")))
	}
	for _, form := range signals() {
		v := form.read(&decoder{}, "", []byte("{}"))
		add(v)
		if typ == reflect.TypeFor[picker.Signal]() && reflect.TypeOf(v).Kind() == reflect.Struct {
			values = append(values, filled(t, reflect.TypeOf(v))...)
		}
	}
	return values
}

// TestEveryPolicyOfThePickerHasAJSONForm finds the exported policies of package picker by their
// methods, so that a new one cannot be forgotten here.
func TestEveryPolicyOfThePickerHasAJSONForm(t *testing.T) {
	pkg, err := importer.ForCompiler(token.NewFileSet(), "source", nil).Import("github.com/evenkeel/evenkeel/picker")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, form := range policies() {
		have = append(have, reflect.TypeOf(form.read(&decoder{}, "", []byte("{}"))).Name())
	}
	scope := pkg.Scope()
	policy := scope.Lookup("Policy").Type().Underlying().(*types.Interface)
	found := 0
	for _, name := range scope.Names() {
		obj, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || !obj.Exported() || types.IsInterface(obj.Type()) || !types.Implements(obj.Type(), policy) {
			continue
		}
		found++
		if !slices.Contains(have, name) {
			t.Errorf("picker.%s is a policy and has no JSON form: add it to the table", name)
		}
	}
	if found == 0 {
		t.Error("found no policies")
	}
}
