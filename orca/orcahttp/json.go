package orcahttp

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/evenkeel/evenkeel/orca"
)

// parseJSON reads the proto3 JSON form of the message: names as in the message or in lower camel
// case, numbers plain or in quotes, null as if it were not there. It goes token by token, so
// that a name that is there twice is seen. The caller has bounded its length and checks the numbers.
func parseJSON(r *orca.Report, text string) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := open(d); err != nil {
		return err
	}
	seen, entries := map[string]bool{}, 0
	for d.More() {
		key, err := name(d)
		if err != nil {
			return err
		}
		proto := protoName(key)
		if seen[proto] {
			return &orca.Error{Reason: orca.Duplicate, Key: key}
		}
		if len(seen) == orca.MaxEntries { // the unknown ones count nowhere else
			return &orca.Error{Reason: orca.TooManyEntries}
		}
		seen[proto] = true
		if err := field(r, d, proto, &entries); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return badJSON(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &orca.Error{Reason: orca.BadJSON}
	}
	return nil
}

// field reads the value of one member.
func field(r *orca.Report, d *json.Decoder, proto string, entries *int) error {
	if scalar, bit := r.Scalar(proto); scalar != nil {
		v, ok, err := number(d, proto)
		if ok {
			*scalar = v
			r.Present |= bit
		}
		return err
	}
	switch proto + "." {
	case orca.NamedPrefix:
		return entriesOf(&r.Named, d, proto, entries)
	case orca.UtilizationPrefix:
		return entriesOf(&r.Utilizations, d, proto, entries)
	case orca.CostPrefix:
		return entriesOf(&r.Costs, d, proto, entries)
	}
	// A newer backend's.
	var unknown json.RawMessage
	if err := d.Decode(&unknown); err != nil {
		return badJSON(err)
	}
	return nil
}

// entriesOf reads an object of numbers.
func entriesOf(metrics *orca.Metrics, d *json.Decoder, proto string, entries *int) error {
	t, err := d.Token()
	switch {
	case err != nil:
		return badJSON(err)
	case t == nil: // null
		return nil
	case t != json.Delim('{'):
		return &orca.Error{Reason: orca.NotAnObject, Key: proto}
	}
	for d.More() {
		key, err := name(d)
		if err != nil {
			return err
		}
		v, ok, err := number(d, proto+"."+key)
		if err == nil && ok {
			err = setMetric(metrics, proto+"."+key, key, v, entries)
		}
		if err != nil {
			return err
		}
	}
	_, err = d.Token()
	return badJSON(err)
}

// open reads the beginning of the object.
func open(d *json.Decoder) error {
	t, err := d.Token()
	if err != nil {
		return badJSON(err)
	}
	if t != json.Delim('{') {
		return &orca.Error{Reason: orca.NotAnObject}
	}
	return nil
}

func name(d *json.Decoder) (string, error) {
	t, err := d.Token()
	if err != nil {
		return "", badJSON(err)
	}
	key, ok := t.(string)
	if !ok {
		return "", &orca.Error{Reason: orca.BadJSON}
	}
	return key, nil
}

// number reads a number, plain or in quotes; ok is false for null.
func number(d *json.Decoder, key string) (v float64, ok bool, err error) {
	t, err := d.Token()
	if err != nil {
		return 0, false, badJSON(err)
	}
	text := ""
	switch t := t.(type) {
	case nil:
		return 0, false, nil
	case json.Number:
		text = t.String()
	case string:
		text = t
	default:
		return 0, false, &orca.Error{Reason: orca.NotAnObject, Key: key}
	}
	if v, ok = parseNumber(text); !ok {
		return 0, false, &orca.Error{Reason: orca.BadNumber, Key: key}
	}
	return v, true, nil
}

// badJSON hides how far the decoder came: what a backend sends belongs in no log by itself.
func badJSON(err error) error {
	if err == nil {
		return nil
	}
	return &orca.Error{Reason: orca.BadJSON}
}

// protoName returns the message's name of a member in either spelling.
func protoName(key string) string {
	switch key {
	case "cpuUtilization":
		return orca.CPUName
	case "memUtilization":
		return orca.MemoryName
	case "applicationUtilization":
		return orca.ApplicationName
	case "rpsFractional":
		return orca.QPSName
	case "namedMetrics":
		return "named_metrics"
	case "requestCost":
		return "request_cost"
	}
	return key
}
