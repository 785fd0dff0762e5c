package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// form is the JSON form of one type of policy or signal: its name with an object of its
// parameters, {"p2c": {"choices": 3}}, or the name alone, "p2c", for one with all its defaults.
// I is the interface that they implement.
type form[I any] struct {
	name string
	// read returns the value with the parameters of the object raw.
	read func(d *decoder, at string, raw json.RawMessage) I
	// write returns the parameters of v, nil for none; ok is false where v is of another type.
	write func(v I) (parameters map[string]any, ok bool, err error)
}

// formOf is the form of values of the struct type V, which implements I, with these parameters.
func formOf[I, V any](name string, parameters ...field[V]) form[I] {
	return form[I]{
		name: name,
		read: func(d *decoder, at string, raw json.RawMessage) I {
			var v V
			readObject(d, at, raw, parameters, &v)
			return any(v).(I)
		},
		write: func(i I) (map[string]any, bool, error) {
			v, ok := any(i).(V)
			if !ok {
				return nil, false, nil
			}
			members, err := writeObject(parameters, &v)
			return members, true, err
		},
	}
}

// formOfConstant is the form of one value that has no parameters.
func formOfConstant[I any, V comparable](name string, value V) form[I] {
	return form[I]{
		name: name,
		read: func(d *decoder, at string, raw json.RawMessage) I {
			readObject(d, at, raw, nil, &value)
			return any(value).(I)
		},
		write: func(i I) (map[string]any, bool, error) {
			v, ok := any(i).(V)
			return nil, ok && v == value, nil
		},
	}
}

// union is a field that holds a value in one of these forms. what names their kind in errors.
func union[T, I any](name, what string, of func(*T) *I, forms func() []form[I]) field[T] {
	return field[T]{
		name: name,
		read: func(d *decoder, at string, raw json.RawMessage, into *T) {
			readUnion(d, at, what, raw, forms(), of(into))
		},
		write: func(from *T) (any, error) {
			v := *of(from)
			if any(v) == nil {
				return nil, nil
			}
			for _, f := range forms() {
				if parameters, ok, err := f.write(v); ok {
					if parameters == nil {
						return f.name, err
					}
					return map[string]any{f.name: parameters}, err
				}
			}
			return nil, fmt.Errorf("config: %s is a %T, want the type of %s", name, v, oneOf(names(forms())))
		},
	}
}

func readUnion[I any](d *decoder, at, what string, raw json.RawMessage, forms []form[I], into *I) {
	var name string
	parameters := json.RawMessage("null")
	if json.Unmarshal(raw, &name) != nil {
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			d.wrong(at, raw, oneOf(names(forms)))
			return
		}
		// One member exactly: with two, which one counts would be an accident.
		given := slices.Collect(maps.Keys(members))
		if len(given) != 1 {
			d.wrong(at, raw, "one "+what+", "+oneOf(names(forms)))
			return
		}
		name, parameters = given[0], members[given[0]]
	}
	i := slices.IndexFunc(forms, func(f form[I]) bool { return f.name == name })
	if i < 0 {
		d.wrong(at, json.RawMessage(strconv.Quote(name)), suggest(name, names(forms)))
		return
	}
	*into = forms[i].read(d, join(at, name), parameters)
}

func names[I any](forms []form[I]) []string {
	list := make([]string, len(forms))
	for i, f := range forms {
		list[i] = f.name
	}
	return list
}
