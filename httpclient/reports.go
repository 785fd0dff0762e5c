package httpclient

import (
	"maps"
	"net/http"
	"sync"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/orca/orcahttp"
)

// reporting says what is made of load reports; the zero reporting is nothing.
type reporting struct {
	wanted bool
	ask    string // what requests ask for, empty for nothing
}

func reportingOf(c evenkeel.Config) reporting {
	r := reporting{wanted: c.UsesReports()}
	if r.wanted && c.Reports != nil {
		r.ask = c.Reports.Ask.String()
	}
	return r
}

// spareReports are read into again and again.
var spareReports = sync.Pool{New: func() any { return new(orca.Report) }}

// take gives the pick the report in a header or trailer, returns what it says of the load, and whether there
// is one. One that is no good is counted and otherwise ignored.
func (r reporting) take(pick *evenkeel.Pick[*endpoint], h http.Header) (load evenkeel.Load, ok bool) {
	if !r.wanted || len(h[orcahttp.Header]) == 0 && len(h[orcahttp.HeaderBin]) == 0 {
		return load, false
	}
	report := spareReports.Get().(*orca.Report)
	_, err := orcahttp.ParseHeader(report, h)
	if err == nil {
		load = pick.Report(report)
	} else {
		pick.BadReport(err)
	}
	clear(report.Named) // names are parts of the header
	clear(report.Utilizations)
	clear(report.Costs)
	report.Reset()
	spareReports.Put(report)
	return load, err == nil
}

// asking returns the request with the header that asks for reports, unless it has one. What it
// returns is a copy: the request is the caller's.
func (r reporting) asking(req *http.Request) *http.Request {
	if r.ask == "" || len(req.Header[orcahttp.HeaderRequest]) > 0 {
		return req
	}
	out := *req
	// The copy is shallow: the values are nobody's to change.
	out.Header = make(http.Header, len(req.Header)+1)
	maps.Copy(out.Header, req.Header)
	out.Header[orcahttp.HeaderRequest] = []string{r.ask}
	return &out
}
