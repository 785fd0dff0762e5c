package orca

import (
	"errors"
	"math"
	"unicode/utf8"
)

// Bounds of a report that is read. The protocols have none; without them one backend decides how
// much memory and time each of its responses costs every client.
const (
	MaxBytes   = 8 << 10 // of one encoded report, in any form
	MaxEntries = 128     // of all names together
)

// Fields is a set of a report's scalars.
type Fields uint8

// The scalars of a report.
const (
	CPU Fields = 1 << iota
	Memory
	Application
	QPS
	EPS
)

// Report is one load report. The zero Report says nothing.
//
// Rates are per second, utilizations are parts of what there is: 0.5 is half of it. CPU and
// application utilization can exceed 1 where more is used than was granted.
type Report struct {
	CPU         float64 // cpu_utilization, >= 0
	Memory      float64 // mem_utilization, >= 0
	Application float64 // application_utilization, >= 0: what the backend itself calls full is 1
	QPS         float64 // rps_fractional, >= 0
	EPS         float64 // eps, errors per second, >= 0

	// Present holds the scalars that were sent although they are 0. One that is not 0
	// needs no bit; see Has. The binary form cannot tell an absent scalar from 0 and sets none.
	Present Fields

	Named        Metrics // named_metrics: anything, any sign
	Utilizations Metrics // utilization, >= 0
	Costs        Metrics // request_cost: of the request that was answered
}

// Metric is one named number of a report.
type Metric struct {
	// Name is not empty and valid UTF-8.
	Name string
	// Value is finite.
	Value float64
}

// Metrics are named numbers, each name once, in no particular order. A slice because reports have
// a handful of them: reading one costs one allocation however many there are, and finding a name
// is faster than in a map.
type Metrics []Metric

// Get returns the value of a name, and whether there is one.
func (m Metrics) Get(name string) (float64, bool) {
	for i := range m {
		if m[i].Name == name {
			return m[i].Value, true
		}
	}
	return 0, false
}

// Set adds a name or replaces its value.
func (m *Metrics) Set(name string, value float64) {
	for i := range *m {
		if (*m)[i].Name == name {
			(*m)[i].Value = value
			return
		}
	}
	if *m == nil {
		*m = make(Metrics, 0, 4)
	}
	*m = append(*m, Metric{name, value})
}

// Has reports whether all of the scalars f were reported.
func (r *Report) Has(f Fields) bool {
	has := r.Present
	for i, v := range [...]float64{r.CPU, r.Memory, r.Application, r.QPS, r.EPS} {
		if v != 0 {
			has |= 1 << i
		}
	}
	return has&f == f
}

// Empty reports whether the report says nothing at all.
func (r *Report) Empty() bool {
	const all = CPU | Memory | Application | QPS | EPS
	for f := CPU; f <= all; f <<= 1 {
		if r.Has(f) {
			return false
		}
	}
	return len(r.Named)+len(r.Utilizations)+len(r.Costs) == 0
}

// Reset makes the report say nothing, and keeps its memory for the next one.
func (r *Report) Reset() {
	// Part by part: assigning a whole Report would write its pointers too, which costs most of
	// what a response without a report does.
	r.CPU, r.Memory, r.Application, r.QPS, r.EPS, r.Present = 0, 0, 0, 0, 0, 0
	r.Named, r.Utilizations, r.Costs = r.Named[:0], r.Utilizations[:0], r.Costs[:0]
}

// Clone returns a copy that shares no slice with r.
func (r *Report) Clone() Report {
	c := *r
	c.Named = append(Metrics(nil), r.Named...)
	c.Utilizations = append(Metrics(nil), r.Utilizations...)
	c.Costs = append(Metrics(nil), r.Costs...)
	return c
}

// Validate reports every problem, joined; nil if there is none: numbers that are not finite,
// negative numbers where none can be, names that are empty or not UTF-8 or occur twice, and
// more than [MaxEntries] names. The errors are of type *[Error].
func (r *Report) Validate() error {
	if r.Check() == nil {
		return nil
	}
	var problems []error
	r.check(func(e *Error) bool { problems = append(problems, e); return true })
	return errors.Join(problems...)
}

// Check returns the first problem that Validate would, of type *[Error]. It does not allocate
// where there is none.
func (r *Report) Check() error {
	var first error
	r.check(func(e *Error) bool { first = e; return false })
	return first
}

// check calls found with each problem until it returns false.
func (r *Report) check(found func(*Error) bool) {
	for i, v := range [...]float64{r.CPU, r.Memory, r.Application, r.QPS, r.EPS} {
		if reason := badNumber(v, true); reason != 0 && !found(&Error{reason, scalarNames[i], v}) {
			return
		}
	}
	if n := len(r.Named) + len(r.Utilizations) + len(r.Costs); n > MaxEntries {
		// More are not looked at: comparing names is quadratic.
		found(&Error{Reason: TooManyEntries, Value: float64(n)})
		return
	}
	for _, group := range [...]struct {
		prefix  string
		metrics Metrics
		signed  bool
	}{{NamedPrefix, r.Named, true}, {UtilizationPrefix, r.Utilizations, false}, {CostPrefix, r.Costs, true}} {
		for i, m := range group.metrics {
			reason := badNumber(m.Value, !group.signed)
			if m.Name == "" || !utf8.ValidString(m.Name) {
				reason = BadKey
			} else if _, twice := group.metrics[:i].Get(m.Name); twice {
				reason = Duplicate
			}
			if reason != 0 && !found(&Error{reason, group.prefix + m.Name, m.Value}) {
				return
			}
		}
	}
}

// badNumber returns what is wrong with v, 0 if nothing is.
func badNumber(v float64, unsigned bool) Reason {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return NotFinite
	case unsigned && v < 0:
		return Negative
	}
	return 0
}

// The names of the parts of a report in text, and of the message's fields.
const (
	CPUName         = "cpu_utilization"
	MemoryName      = "mem_utilization"
	ApplicationName = "application_utilization"
	QPSName         = "rps_fractional"
	EPSName         = "eps"

	NamedPrefix       = "named_metrics."
	UtilizationPrefix = "utilization."
	CostPrefix        = "request_cost."
)

// scalarNames are in the order of the bits of Fields.
var scalarNames = [...]string{CPUName, MemoryName, ApplicationName, QPSName, EPSName}

// Scalar returns the scalar of a name in text, or nil and 0.
func (r *Report) Scalar(name string) (*float64, Fields) {
	switch name {
	case CPUName:
		return &r.CPU, CPU
	case MemoryName:
		return &r.Memory, Memory
	case ApplicationName:
		return &r.Application, Application
	case QPSName:
		return &r.QPS, QPS
	case EPSName:
		return &r.EPS, EPS
	}
	return nil, 0
}
