package orcahttp

import (
	"strconv"
	"strings"

	"github.com/evenkeel/evenkeel/orca"
)

// parseText reads a list of key=number or key:number. The caller has bounded its length and checks
// the numbers.
func parseText(r *orca.Report, list string) error {
	entries := 0
	for list != "" {
		entry := list
		if i := strings.IndexByte(list, ','); i >= 0 {
			entry, list = list[:i], list[i+1:]
		} else {
			list = ""
		}
		if entry = trim(entry); entry == "" {
			continue
		}
		i := separator(entry)
		if i < 0 {
			return &orca.Error{Reason: orca.BadEntry, Key: entry}
		}
		key, number := trim(entry[:i]), trim(entry[i+1:])
		if number == "" {
			return &orca.Error{Reason: orca.BadEntry, Key: key}
		}
		v, ok := parseNumber(number)
		if !ok {
			return &orca.Error{Reason: orca.BadNumber, Key: key}
		}
		if err := set(r, key, v, &entries); err != nil {
			return err
		}
	}
	return nil
}

// set stores what one entry says.
func set(r *orca.Report, key string, v float64, entries *int) error {
	if scalar, field := r.Scalar(key); scalar != nil {
		if r.Present&field != 0 {
			return &orca.Error{Reason: orca.Duplicate, Key: key}
		}
		*scalar = v
		r.Present |= field
		return nil
	}
	var metrics *orca.Metrics
	name, ok := strings.CutPrefix(key, orca.NamedPrefix)
	if ok {
		metrics = &r.Named
	} else if name, ok = strings.CutPrefix(key, orca.UtilizationPrefix); ok {
		metrics = &r.Utilizations
	} else if name, ok = strings.CutPrefix(key, orca.CostPrefix); ok {
		metrics = &r.Costs
	} else {
		return &orca.Error{Reason: orca.UnknownKey, Key: key}
	}
	return setMetric(metrics, key, name, v, entries)
}

// setMetric adds one named number, whose whole key is for the error.
func setMetric(metrics *orca.Metrics, key, name string, v float64, entries *int) error {
	if name == "" {
		return &orca.Error{Reason: orca.BadKey, Key: key}
	}
	if *entries++; *entries > orca.MaxEntries {
		return &orca.Error{Reason: orca.TooManyEntries}
	}
	// That a name is not there twice is looked for once, at the end.
	if *metrics == nil {
		*metrics = make(orca.Metrics, 0, 4)
	}
	*metrics = append(*metrics, orca.Metric{Name: name, Value: v})
	return nil
}

// separator returns where the first "=" or ":" is, or -1.
func separator(s string) int {
	for i := range len(s) {
		if s[i] == '=' || s[i] == ':' {
			return i
		}
	}
	return -1
}

// trim removes blanks and tabs, what HTTP calls optional white space.
func trim(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// parseNumber reads a decimal number within float64. strconv knows more: hexadecimal, underscores,
// and the names of infinities and NaN.
func parseNumber(s string) (float64, bool) {
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9', c == '+', c == '-', c == '.', c == 'e', c == 'E':
		default:
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}
