package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// policies are all that a config can name.
var policies = []policyForm{
	policyOf[picker.RoundRobin]("round_robin"),
	policyOf[picker.Random]("random"),
	policyOf("p2c",
		enum("signal", func(p *picker.P2C) *picker.Signal { return &p.Signal }, signals)),
}

// signals are what a policy that compares can go by.
var signals = []named[picker.Signal]{
	{"in_flight", picker.InFlight},
	{"latency", picker.Latency},
}

// policyForm is the JSON form of one type of policy.
type policyForm struct {
	name string
	// read returns the policy with the parameters of the object raw.
	read func(d *decoder, at string, raw json.RawMessage) evenkeel.Policy
	// write returns the parameters of p; ok is false where p is of another type.
	write func(p evenkeel.Policy) (parameters map[string]any, ok bool, err error)
}

// policyOf is the form of policies of type P with these parameters.
func policyOf[P evenkeel.Policy](name string, parameters ...field[P]) policyForm {
	return policyForm{
		name: name,
		read: func(d *decoder, at string, raw json.RawMessage) evenkeel.Policy {
			var p P
			readObject(d, at, raw, parameters, &p)
			return p
		},
		write: func(p evenkeel.Policy) (map[string]any, bool, error) {
			own, ok := p.(P)
			if !ok {
				return nil, false, nil
			}
			members, err := writeObject(parameters, &own)
			return members, true, err
		},
	}
}

// policyField is a field that holds a policy: {"p2c": {"signal": "latency"}}, or "p2c" for one with
// all its defaults.
func policyField[T any](name string, of func(*T) *evenkeel.Policy) field[T] {
	return field[T]{
		name: name,
		read: func(d *decoder, at string, raw json.RawMessage, into *T) {
			if kind, parameters, ok := d.policyMember(at, raw); ok {
				readPolicy(d, at, kind, parameters, of(into))
			}
		},
		write: func(from *T) (any, error) { return writePolicy(*of(from)) },
	}
}

// policyMember returns the name and the parameters in either form of a policy.
func (d *decoder) policyMember(at string, raw json.RawMessage) (name string, parameters json.RawMessage, ok bool) {
	if json.Unmarshal(raw, &name) == nil {
		return name, json.RawMessage("null"), true
	}
	members, ok := d.members(at, raw)
	if !ok {
		return "", nil, false
	}
	// One member exactly: with two, which one counts would be an accident.
	names := slices.Collect(maps.Keys(members))
	if len(names) != 1 {
		d.wrong(at, raw, "one policy, "+oneOf(policyNames()))
		return "", nil, false
	}
	return names[0], members[names[0]], true
}

func policyNames() []string {
	names := make([]string, len(policies))
	for i, form := range policies {
		names[i] = form.name
	}
	return names
}

func readPolicy(d *decoder, at, name string, parameters json.RawMessage, into *evenkeel.Policy) {
	i := slices.IndexFunc(policies, func(f policyForm) bool { return f.name == name })
	if i < 0 {
		d.wrong(at, json.RawMessage(strconv.Quote(name)), suggest(name, policyNames()))
		return
	}
	*into = policies[i].read(d, join(at, name), parameters)
}

func writePolicy(p evenkeel.Policy) (any, error) {
	if p == nil {
		return nil, nil
	}
	for _, form := range policies {
		if parameters, ok, err := form.write(p); ok {
			return map[string]any{form.name: parameters}, err
		}
	}
	return nil, fmt.Errorf("config: Policy is a %T, want the type of %s", p, oneOf(policyNames()))
}
