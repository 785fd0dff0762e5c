package orca

import (
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// Field numbers of xds.data.orca.v3.OrcaLoadReport. 3 is an older rate, a whole number, that
// nobody reads any more.
const (
	fieldCPU         = 1
	fieldMemory      = 2
	fieldCosts       = 4
	fieldUtilization = 5
	fieldQPS         = 6
	fieldEPS         = 7
	fieldNamed       = 8
	fieldApplication = 9
)

// Wire types of the protocol buffers encoding.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// UnmarshalString makes r what the serialized OrcaLoadReport in s says, reusing its memory, and
// checks it. Names are parts of s, not copies. On an error, of type *[Error], r is
// empty.
//
// It is the proto3 rules by hand, so that HTTP clients need no protobuf library: the last of a
// field sent twice counts, a field of another wire type is unknown, unknown fields are
// skipped. Groups, which proto3 does not have, are refused.
func (r *Report) UnmarshalString(s string) error {
	r.Reset()
	err := r.unmarshal(s)
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		r.Reset()
	}
	return err
}

var errMalformed = &Error{Reason: Malformed}

func (r *Report) unmarshal(s string) error {
	if len(s) > MaxBytes {
		return &Error{Reason: TooLong}
	}
	entries := 0
	for len(s) > 0 {
		tag, n := uvarint(s)
		if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
			return errMalformed
		}
		body, skipped := value(s[n:], tag&7)
		if skipped < 0 {
			return errMalformed
		}
		s = s[n+skipped:]
		if tag&7 == wireFixed64 {
			if p := r.scalarOf(tag >> 3); p != nil {
				*p = float64At(body)
			}
			continue
		}
		metrics := r.metricsOf(tag)
		if metrics == nil {
			continue
		}
		if entries++; entries > MaxEntries {
			return &Error{Reason: TooManyEntries}
		}
		name, v, ok := entry(body)
		if !ok {
			return errMalformed
		}
		metrics.Set(name, v)
	}
	return nil
}

func (r *Report) scalarOf(field uint64) *float64 {
	switch field {
	case fieldCPU:
		return &r.CPU
	case fieldMemory:
		return &r.Memory
	case fieldQPS:
		return &r.QPS
	case fieldEPS:
		return &r.EPS
	case fieldApplication:
		return &r.Application
	}
	return nil
}

func (r *Report) metricsOf(tag uint64) *Metrics {
	switch tag {
	case fieldCosts<<3 | wireBytes:
		return &r.Costs
	case fieldUtilization<<3 | wireBytes:
		return &r.Utilizations
	case fieldNamed<<3 | wireBytes:
		return &r.Named
	}
	return nil
}

// entry reads one entry of a map<string, double>. Both parts may be left out.
func entry(s string) (name string, v float64, ok bool) {
	for len(s) > 0 {
		tag, n := uvarint(s)
		if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
			return "", 0, false
		}
		body, skipped := value(s[n:], tag&7)
		if skipped < 0 {
			return "", 0, false
		}
		s = s[n+skipped:]
		switch tag {
		case 1<<3 | wireBytes:
			if name = body; !utf8.ValidString(name) {
				return "", 0, false
			}
		case 2<<3 | wireFixed64:
			v = float64At(body)
		}
	}
	return name, v, true
}

// value returns the value at the start of s and how long it is with its length, or -1.
func value(s string, wire uint64) (body string, n int) {
	switch wire {
	case wireVarint:
		if _, n = uvarint(s); n <= 0 {
			return "", -1
		}
		return "", n
	case wireFixed64, wireFixed32:
		n = 8
		if wire == wireFixed32 {
			n = 4
		}
		if len(s) < n {
			return "", -1
		}
		return s[:n], n
	case wireBytes:
		length, n := uvarint(s)
		if n <= 0 || length > uint64(len(s)-n) {
			return "", -1
		}
		return s[n : n+int(length)], n + int(length)
	}
	return "", -1
}

// uvarint is binary.Uvarint of a string.
func uvarint(s string) (x uint64, n int) {
	for i := range min(len(s), binary.MaxVarintLen64) {
		b := s[i]
		if i == binary.MaxVarintLen64-1 && b > 1 {
			return 0, -1
		}
		x |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return x, i + 1
		}
	}
	return 0, -1
}

func float64At(s string) float64 {
	_ = s[7]
	return math.Float64frombits(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
}

// AppendBinary appends the report as a serialized OrcaLoadReport, whose scalars of 0 are left
// out, present or not. The error is always nil; it is there for [encoding.BinaryAppender].
func (r *Report) AppendBinary(b []byte) ([]byte, error) {
	b = appendScalar(b, fieldCPU, r.CPU)
	b = appendScalar(b, fieldMemory, r.Memory)
	b = appendEntries(b, fieldCosts, r.Costs)
	b = appendEntries(b, fieldUtilization, r.Utilizations)
	b = appendScalar(b, fieldQPS, r.QPS)
	b = appendScalar(b, fieldEPS, r.EPS)
	b = appendEntries(b, fieldNamed, r.Named)
	b = appendScalar(b, fieldApplication, r.Application)
	return b, nil
}

func appendScalar(b []byte, field int, v float64) []byte {
	if v == 0 {
		return b
	}
	b = append(b, byte(field<<3|wireFixed64))
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

func appendEntries(b []byte, field int, metrics Metrics) []byte {
	for _, m := range metrics {
		nameBytes := 1 + uvarintLen(len(m.Name)) + len(m.Name)
		b = append(b, byte(field<<3|wireBytes))
		b = binary.AppendUvarint(b, uint64(nameBytes+1+8))
		b = append(b, 1<<3|wireBytes)
		b = binary.AppendUvarint(b, uint64(len(m.Name)))
		b = append(b, m.Name...)
		b = append(b, 2<<3|wireFixed64)
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(m.Value))
	}
	return b
}

func uvarintLen(n int) int {
	length := 1
	for ; n >= 0x80; n >>= 7 {
		length++
	}
	return length
}
