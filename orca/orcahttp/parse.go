package orcahttp

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/evenkeel/evenkeel/orca"
)

// The header fields of reports and, in requests, of what is asked for, in canonical form: maps are
// indexed with it.
const (
	Header        = "Endpoint-Load-Metrics"
	HeaderBin     = "Endpoint-Load-Metrics-Bin"
	HeaderRequest = "Endpoint-Load-Metrics-Format" // "TEXT" or "JSON": some backends report only if asked
)

// ParseResponse makes r the report of a response: the one in its header, or if that has none that
// is valid, the one in its trailer, which net/http has once the body has been read to its end. found
// says whether there was one. err is of type *[orca.Error], the header's if both are bad; it is no
// reason to do anything but count it. r is empty unless found is true and err nil.
func ParseResponse(r *orca.Report, resp *http.Response) (found bool, err error) {
	found, err = ParseHeader(r, resp.Header)
	if found && err == nil || len(resp.Trailer) == 0 {
		return found, err
	}
	inTrailer, trailerErr := ParseHeader(r, resp.Trailer)
	if inTrailer && (trailerErr == nil || !found) {
		return true, trailerErr
	}
	return found, err
}

// ParseHeader makes r the report in h, a header or a trailer with names in canonical form, reusing
// r's memory. found says whether there is a report; without one r is empty. A report that is not
// valid is found, err says why, and r is empty. Names are parts of h's strings.
func ParseHeader(r *orca.Report, h http.Header) (found bool, err error) {
	lines, bin := h[HeaderBin], true
	if len(lines) == 0 {
		if lines, bin = h[Header], false; len(lines) == 0 {
			r.Reset()
			return false, nil
		}
	}
	switch {
	case len(lines) > 1:
		r.Reset()
		err = &orca.Error{Reason: orca.MoreThanOne}
	case bin:
		err = parseBase64(r, lines[0])
	default:
		err = ParseValue(r, lines[0])
	}
	return true, err
}

// ParseValue makes r what one value of endpoint-load-metrics says.
func ParseValue(r *orca.Report, value string) error {
	r.Reset()
	if len(value) > orca.MaxBytes {
		return &orca.Error{Reason: orca.TooLong}
	}
	// net/http has trimmed the blank after the prefix of an empty list.
	format, rest, _ := strings.Cut(value, " ")
	var err error
	switch format {
	case "TEXT":
		err = parseText(r, rest)
	case "JSON":
		err = parseJSON(r, rest)
	case "BIN":
		return parseBase64(r, rest)
	default:
		err = &orca.Error{Reason: orca.UnknownFormat}
	}
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		r.Reset()
	}
	return err
}

// stackBytes is how much is decoded without allocating. Reports are a hundred bytes or two.
const stackBytes = 512

// parseBase64 reads the message in base64, with padding or without.
func parseBase64(r *orca.Report, value string) error {
	r.Reset()
	value = strings.TrimSuffix(strings.TrimSuffix(value, "="), "=")
	switch {
	case value == "":
		return &orca.Error{Reason: orca.Empty}
	case len(value) > orca.MaxBytes:
		return &orca.Error{Reason: orca.TooLong}
	}
	var small [stackBytes]byte
	decoded := small[:]
	if n := base64.RawStdEncoding.DecodedLen(len(value)); n > len(decoded) {
		decoded = make([]byte, n)
	}
	n, err := base64.RawStdEncoding.Decode(decoded, []byte(value))
	if err != nil {
		return &orca.Error{Reason: orca.BadBase64}
	}
	// One string for all names.
	return r.UnmarshalString(string(decoded[:n]))
}
