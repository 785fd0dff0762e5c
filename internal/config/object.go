package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// field is one member of the JSON object that describes a T.
type field[T any] struct {
	name string
	// read sets the field of into from raw, which is not null. It reports what is wrong to d.
	read func(d *decoder, at string, raw json.RawMessage, into *T)
	// write returns the value for the field of from, nil to leave it out.
	write func(from *T) (any, error)
}

// decoder collects what one Parse finds.
type decoder struct {
	strict   bool
	unknown  []unknownField
	problems []error
}

// unknownField is a member that no field has the name of.
type unknownField struct {
	path string
	hint string
}

// wrong reports a value that is not what its field takes.
func (d *decoder) wrong(at string, got json.RawMessage, want string) {
	if at == "" {
		at = "the config"
	}
	d.problems = append(d.problems, fmt.Errorf("config: %s is %s, want %s", at, clip(string(got)), want))
}

// result returns the report and all problems. Whether unknown fields are among them is known only
// when everything has been read.
func (d *decoder) result() (Report, error) {
	var r Report
	for _, u := range d.unknown {
		r.Unknown = append(r.Unknown, u.path)
		if d.strict {
			d.problems = append(d.problems, fmt.Errorf("config: %s is not a known field, want %s", u.path, u.hint))
		}
	}
	return r, errors.Join(d.problems...)
}

// readObject sets into from the object raw. at is the dotted path of the object.
func readObject[T any](d *decoder, at string, raw json.RawMessage, fields []field[T], into *T) {
	if isNull(raw) {
		return
	}
	members, ok := d.members(at, raw)
	if !ok {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		path := join(at, name)
		i := slices.IndexFunc(fields, func(f field[T]) bool { return f.name == name })
		switch {
		case i < 0:
			d.unknown = append(d.unknown, unknownField{path, suggest(name, fieldNames(fields))})
		case !isNull(members[name]):
			fields[i].read(d, path, members[name], into)
		}
	}
}

// members returns the members of the object raw, the last one of each name.
func (d *decoder) members(at string, raw json.RawMessage) (members map[string]json.RawMessage, ok bool) {
	if err := json.Unmarshal(raw, &members); err != nil {
		d.wrong(at, raw, "an object")
		return nil, false
	}
	return members, true
}

// writeObject returns the members that describe from.
func writeObject[T any](fields []field[T], from *T) (map[string]any, error) {
	members := map[string]any{}
	var problems []error
	for _, f := range fields {
		v, err := f.write(from)
		switch {
		case err != nil:
			problems = append(problems, err)
		case v != nil:
			members[f.name] = v
		}
	}
	return members, errors.Join(problems...)
}

func fieldNames[T any](fields []field[T]) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// join appends a member's name to a path. Names come from outside, so that those that could be
// mistaken for something else are quoted.
func join(at, name string) string {
	plain := func(r rune) bool {
		return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		name = strconv.Quote(name)
	}
	if name = clip(name); at == "" {
		return name
	}
	return at + "." + name
}

// clip shortens a value for an error text.
func clip(s string) string {
	const longest = 60
	if len(s) <= longest {
		return s
	}
	return strings.ToValidUTF8(s[:longest], "") + "..."
}
