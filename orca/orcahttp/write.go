package orcahttp

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/evenkeel/evenkeel/orca"
)

// Format is a way to write a report.
type Format uint8

const (
	// BinaryHeader is endpoint-load-metrics-bin: the shortest, read by all.
	BinaryHeader Format = iota
	// Text is "TEXT" in endpoint-load-metrics, for people.
	Text
	// JSON is "JSON" in endpoint-load-metrics.
	JSON
	// Binary is "BIN" in endpoint-load-metrics.
	Binary
)

// AppendHeader sets the report in h, a header or a trailer, in place of one that is there. It
// returns the report's first problem, of type *[orca.Error], and then leaves h alone: no reader
// would accept it. A report in text whose names hold "," "=" ":" or control characters is one of
// those.
func AppendHeader(h http.Header, r *orca.Report, f Format) error {
	name, value, err := encode(r, f)
	if err != nil {
		return err
	}
	delete(h, Header)
	delete(h, HeaderBin)
	h[name] = []string{value}
	return nil
}

// encode returns the header field of a report.
func encode(r *orca.Report, f Format) (name, value string, err error) {
	if err := r.Check(); err != nil {
		return "", "", err
	}
	var stack [2 * stackBytes]byte
	b := stack[:0]
	name = Header
	switch f {
	case Text:
		b, err = appendText(b, r)
	case JSON:
		b, err = appendJSON(b, r)
	case Binary:
		b = appendBinary(append(b, "BIN "...), r)
	default:
		name = HeaderBin
		b = appendBinary(b, r)
	}
	if err != nil {
		return "", "", err
	}
	if len(b) > orca.MaxBytes {
		return "", "", &orca.Error{Reason: orca.TooLong}
	}
	return name, string(b), nil
}

// appendBinary appends base64, with padding: not all readers can do without.
func appendBinary(b []byte, r *orca.Report) []byte {
	var stack [stackBytes]byte
	message, _ := r.AppendBinary(stack[:0])
	if len(message) == 0 {
		// An empty value would be no report. A rate of 0 says the same as none.
		message = append(message, 6<<3|1, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	return base64.StdEncoding.AppendEncode(b, message)
}

// parts calls f with each scalar that is there and each group.
func parts(r *orca.Report, scalar func(name string, v float64), group func(prefix string, m orca.Metrics)) {
	for _, s := range [...]struct {
		name  string
		field orca.Fields
		v     float64
	}{
		{orca.CPUName, orca.CPU, r.CPU}, {orca.MemoryName, orca.Memory, r.Memory},
		{orca.ApplicationName, orca.Application, r.Application},
		{orca.QPSName, orca.QPS, r.QPS}, {orca.EPSName, orca.EPS, r.EPS},
	} {
		if r.Has(s.field) {
			scalar(s.name, s.v)
		}
	}
	group(orca.NamedPrefix, r.Named)
	group(orca.UtilizationPrefix, r.Utilizations)
	group(orca.CostPrefix, r.Costs)
}

func appendText(b []byte, r *orca.Report) ([]byte, error) {
	b = append(b, "TEXT"...)
	separator := byte(' ')
	entry := func(prefix, name string, v float64) {
		b = append(b, separator)
		if separator == ',' {
			b = append(b, ' ')
		}
		separator = ','
		b = append(append(append(b, prefix...), name...), '=')
		b = strconv.AppendFloat(b, v, 'g', -1, 64)
	}
	var err error
	parts(r, func(name string, v float64) { entry("", name, v) }, func(prefix string, metrics orca.Metrics) {
		for _, m := range metrics {
			if !textual(m.Name) {
				err = &orca.Error{Reason: orca.BadKey, Key: prefix + m.Name}
			}
			entry(prefix, m.Name, m.Value)
		}
	})
	return b, err
}

// textual reports whether a name can be written in text and comes back the same.
func textual(name string) bool {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c == 0x7f || c == ',' || c == '=' || c == ':' {
			return false
		}
	}
	return trim(name) == name
}

func appendJSON(b []byte, r *orca.Report) ([]byte, error) {
	message := map[string]any{}
	parts(r, func(name string, v float64) { message[name] = v }, func(prefix string, metrics orca.Metrics) {
		if len(metrics) == 0 {
			return
		}
		object := make(map[string]float64, len(metrics))
		for _, m := range metrics {
			object[m.Name] = m.Value
		}
		message[prefix[:len(prefix)-1]] = object
	})
	text, err := json.Marshal(message)
	return append(append(b, "JSON "...), text...), err
}
