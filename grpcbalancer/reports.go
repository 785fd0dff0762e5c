package grpcbalancer

import (
	"sync"

	v3orcapb "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/grpc/balancer"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/orca/orcagrpc"
)

// spareReports are read into again and again.
var spareReports = sync.Pool{New: func() any { return new(orca.Report) }}

// takeReport gives the pick the load report that came with an attempt's end, if one did, and returns what it
// says of the load.
func takeReport(pick *evenkeel.Pick[*endpoint], info balancer.DoneInfo) (load evenkeel.Load) {
	// gRPC's parser gives the nil *OrcaLoadReport where there is no report: the usual case, so that it comes
	// first. And where there is one that it cannot read, which only the trailer tells.
	m, _ := info.ServerLoad.(*v3orcapb.OrcaLoadReport)
	if m == nil && len(info.Trailer[orcagrpc.TrailerKey]) == 0 {
		return load
	}
	report := spareReports.Get().(*orca.Report)
	var err error
	if m != nil {
		err = orcagrpc.FromProto(report, m)
	} else {
		_, err = orcagrpc.ParseTrailer(report, info.Trailer)
	}
	if err == nil {
		load = pick.Report(report)
	} else {
		pick.BadReport(err)
	}
	report.Reset()
	spareReports.Put(report)
	return load
}

// outOfBandFor returns what asks for the reports that a config wants beside the calls, nil if it wants
// none, or has only policies go by reports, which take those of calls alone. It is the same for the same wish, so
// that an update which leaves that as it was ends no stream. Called under calls, once there is a pool.
func (p *policy) outOfBandFor(c evenkeel.Config) *outOfBand {
	switch {
	case c.Reports == nil || c.Reports.OutOfBand == 0 || c.Reports.Weights == evenkeel.ListedWeights || !c.UsesReports():
		return nil
	case p.reports != nil && p.reports.every == c.Reports.OutOfBand:
		return p.reports
	}
	pool := p.pool
	return &outOfBand{
		every: c.Reports.OutOfBand,
		take:  func(key string, r *orca.Report) { pool.Report(key, r) },
		bad:   func(_ string, err error) { pool.BadReport(err) },
		mute: func(key string) {
			p.warnings.add("mute", key+" is not asked for load reports: its connection is one of a parent policy that offers no streams of its own")
		},
		without: func(key string) {
			p.warnings.add("no reports", "grpcbalancer: servers without xds.service.orca.v3.OpenRcaService report nothing out of band: "+key+" is one")
		},
	}
}
