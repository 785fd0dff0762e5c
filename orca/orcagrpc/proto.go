package orcagrpc

import (
	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/grpc/metadata"

	"github.com/evenkeel/evenkeel/orca"
)

// TrailerKey is the metadata key of a report.
const TrailerKey = "endpoint-load-metrics-bin"

// FromProto makes r what the message says, reusing r's memory, and checks it: gRPC's own clients
// take any number. On an error, of type *[orca.Error], r is empty. A nil message says
// nothing.
func FromProto(r *orca.Report, m *v3orcapb.OrcaLoadReport) error {
	r.Reset()
	if len(m.GetNamedMetrics())+len(m.GetUtilization())+len(m.GetRequestCost()) > orca.MaxEntries {
		return &orca.Error{Reason: orca.TooManyEntries}
	}
	r.CPU, r.Memory, r.Application = m.GetCpuUtilization(), m.GetMemUtilization(), m.GetApplicationUtilization()
	r.QPS, r.EPS = m.GetRpsFractional(), m.GetEps()
	r.Named = appendMap(r.Named, m.GetNamedMetrics())
	r.Utilizations = appendMap(r.Utilizations, m.GetUtilization())
	r.Costs = appendMap(r.Costs, m.GetRequestCost())
	if err := r.Check(); err != nil {
		r.Reset()
		return err
	}
	return nil
}

func appendMap(metrics orca.Metrics, m map[string]float64) orca.Metrics {
	if len(m) > 0 && metrics == nil {
		metrics = make(orca.Metrics, 0, len(m))
	}
	for name, v := range m {
		metrics = append(metrics, orca.Metric{Name: name, Value: v})
	}
	return metrics
}

// ToProto returns the report as a message, which cannot tell a scalar of 0 from an absent one.
func ToProto(r *orca.Report) *v3orcapb.OrcaLoadReport {
	return &v3orcapb.OrcaLoadReport{
		CpuUtilization: r.CPU, MemUtilization: r.Memory, ApplicationUtilization: r.Application,
		RpsFractional: r.QPS, Eps: r.EPS,
		NamedMetrics: toMap(r.Named), Utilization: toMap(r.Utilizations), RequestCost: toMap(r.Costs),
	}
}

func toMap(metrics orca.Metrics) map[string]float64 {
	if len(metrics) == 0 {
		return nil
	}
	m := make(map[string]float64, len(metrics))
	for _, metric := range metrics {
		m[metric.Name] = metric.Value
	}
	return m
}

// FromServerLoad makes r the report in balancer.DoneInfo.ServerLoad. found is false if load is no
// report: nil, another type, or the nil *OrcaLoadReport that grpc-go gives for a call without one.
func FromServerLoad(r *orca.Report, load any) (found bool, err error) {
	m, ok := load.(*v3orcapb.OrcaLoadReport)
	if !ok || m == nil {
		r.Reset()
		return false, nil
	}
	return true, FromProto(r, m)
}

// ParseTrailer makes r the report in a call's trailer, reusing r's memory. found says whether there
// is one; an error, of type *[orca.Error], says why it is dropped, and r is empty. Names are parts
// of md's strings.
func ParseTrailer(r *orca.Report, md metadata.MD) (found bool, err error) {
	values := md[TrailerKey]
	switch len(values) {
	case 0:
		r.Reset()
		return false, nil
	case 1:
		return true, r.UnmarshalString(values[0])
	}
	r.Reset()
	return true, &orca.Error{Reason: orca.MoreThanOne}
}
