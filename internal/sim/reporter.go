package sim

import (
	"time"

	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/picker"
)

// Reports say what servers report on their answers, good or bad: what an [orca.Tracker] around
// the server counts, from when a request comes in until its answer leaves.
type Reports struct {
	// On makes servers report.
	On bool
	// Lost is the part of the answers that come without their report, 0 to 1.
	Lost float64
	// Age makes each answer carry the report of so long ago, 0 for the present one.
	Age time.Duration
	// Early reports at the beginning of the answer, as in a header, with the request itself
	// among those in flight; else at its end, as in a trailer.
	Early bool
	// Window is the tracker's; 0 means its default.
	Window time.Duration
}

// Reporting is how a server reports. The zero Reporting is the truth.
type Reporting struct {
	// Silent reports nothing.
	Silent bool
	// Lie, if not nil, takes the place of the n-th report.
	Lie func(n int) picker.Load
}

// reporter is the part of a server that reports. The nil reporter says nothing.
type reporter struct {
	rules   *Reports
	lie     func(n int) picker.Load
	tracker *orca.Tracker
	report  orca.Report // scratch
	reports int
	held    ring[heldReport] // of the last Age
	old     picker.Load      // the last one that is as old
}

type heldReport struct {
	at   int64
	load picker.Load
}

func newReporter(rules *Reports, how Reporting) *reporter {
	if !rules.On || how.Silent {
		return nil
	}
	return &reporter{rules: rules, lie: how.Lie, tracker: orca.NewTracker(orca.TrackerConfig{Window: rules.Window})}
}

func (p *reporter) begin(q *request, now int64) {
	if p != nil {
		q.call = p.tracker.Begin(now)
	}
}

// end makes the report for the answer of q, which leaves now.
func (p *reporter) end(r *run, q *request) {
	if p == nil {
		return
	}
	kind := orca.Served
	if q.outcome != picker.Success {
		kind = orca.Failed
	}
	if p.rules.Early {
		p.tracker.Report(&p.report, r.now)
		p.tracker.End(q.call, r.now, kind)
	} else {
		p.tracker.End(q.call, r.now, kind)
		p.tracker.Report(&p.report, r.now)
	}
	load := loadOf(&p.report)
	if p.lie != nil {
		load = p.lie(p.reports)
		p.reports++
	}
	if age := int64(p.rules.Age); age > 0 {
		p.held.push(heldReport{r.now, load})
		for p.held.n > 0 && p.held.first().at <= r.now-age {
			p.old = p.held.pop().load
		}
		load = p.old
	}
	if p.rules.Lost == 0 || uniform(&r.chance) >= p.rules.Lost {
		q.report = load
	}
}

// loadOf is what an adapter makes of a tracker's report.
func loadOf(o *orca.Report) picker.Load {
	var l picker.Load
	if n, ok := o.Named.Get(orca.InFlightMetric); ok {
		l = l.WithInFlight(n)
	}
	if us, ok := o.Named.Get(orca.LatencyMetric); ok {
		l = l.WithLatency(time.Duration(us * 1e3))
	}
	if o.QPS > 0 {
		l = l.WithErrorRate(o.EPS / o.QPS)
	}
	return l
}
