package evenkeel

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/evenkeel/evenkeel/orca"
	"github.com/evenkeel/evenkeel/picker"
)

// WeightSource says where the weights of endpoints come from.
type WeightSource uint8

const (
	// ListedWeights are those of the list.
	ListedWeights WeightSource = iota
	// ReportedWeights are the capacities that load reports show: see [orca.Weights].
	ReportedWeights
	// FeedbackWeights are moved, by the utilization that endpoints report, until it is the same
	// for all: see [orca.Feedback].
	FeedbackWeights

	weightSources = iota
)

var weightSourceNames = [weightSources]string{"listed", "reported", "feedback"}

// String returns the source's name.
func (s WeightSource) String() string {
	if int(s) < weightSources {
		return weightSourceNames[s]
	}
	return "invalid"
}

// ReportFormat is what HTTP requests ask endpoints for.
type ReportFormat uint8

const (
	// AskNothing asks for nothing: endpoints that always report do so.
	AskNothing ReportFormat = iota
	// AskText asks for the form TEXT.
	AskText
	// AskJSON asks for the form JSON.
	AskJSON

	reportFormats = iota
)

var reportFormatNames = [reportFormats]string{"", "TEXT", "JSON"}

// String returns the value of the request's header, "" for AskNothing.
func (f ReportFormat) String() string {
	if int(f) < reportFormats {
		return reportFormatNames[f]
	}
	return "invalid"
}

// Bounds of ReportsConfig.OutOfBand.
const (
	minOutOfBand = 100 * time.Millisecond
	maxOutOfBand = time.Hour

	defaultExpiry = 3 * time.Minute // orca.WeightConfig's
)

// ReportsConfig says what is made of the load reports (ORCA) of endpoints: see package orca. The
// zero ReportsConfig, and none, reads them where the policy goes by the expected wait, as the default does (an
// endpoint that reports more in flight than it usually does then costs more), and leaves weights as listed.
//
//	evenkeel.Config{
//		Policy:  picker.WeightedRoundRobin{},
//		Reports: &evenkeel.ReportsConfig{Weights: evenkeel.ReportedWeights},
//	}
//
// In JSON that is {"policy": "weighted", "reports": {"weights": "reported"}}. What one endpoint can take or lose by what
// it reports is bounded by Weight.Least and Weight.Most, or those of Feedback.
type ReportsConfig struct {
	// Weights says where weights come from, for all policies that use them. With ReportedWeights or
	// FeedbackWeights those of the list do not count, but that 0 still means drained; endpoints
	// about which nothing is known have the median weight, and with ReportedWeights, while nothing is known of two,
	// all are equal (gRFC A58). Whoever is connected to anew begins anew; over HTTP nothing tells a server that was
	// restarted from the one before. Weights move at [Pool.Sweep]. RoundRobin and Random do not look
	// at weights, which is one of [Stats].Warnings; policies that hash would move keys with each report, and refuse it.
	//
	// A weight needs a rate and a utilization: servers have to report QPS and one of those in Weight.Utilization.
	// [Stats] tells whether they do, by UsedReports and UnusableReports, and for each endpoint by Reporting.
	//
	// FeedbackWeights are for policies that deal out shares, as [picker.WeightedRoundRobin] does and the default more or
	// less. With [picker.Least] and hardly more than one request at a time, the endpoint with the greatest weight gets
	// all of them until feedback has lowered that: endpoints take turns, of seconds or minutes.
	Weights WeightSource
	// Weight says how reports become ReportedWeights, and which of their numbers is the utilization
	// that FeedbackWeights go by.
	Weight orca.WeightConfig
	// Feedback says how FeedbackWeights move.
	Feedback orca.FeedbackConfig
	// OutOfBand makes the gRPC policy ask each endpoint for a stream of reports at this interval,
	// beside those on responses, for weights: with ListedWeights none is asked for. 0 means none; otherwise 100 ms
	// to 1 h. Weight.Expiry is three of it unless it says otherwise, or 3 min if that is more; servers that report less
	// often than they are asked to need one that fits them. gRPC only: HTTP has no such
	// stream; a Pool takes what its owner gets in any way ([Pool.Report]).
	OutOfBand time.Duration
	// Ask makes HTTP requests ask for reports, which some servers send only then, by the header
	// endpoint-load-metrics-format. HTTP only.
	Ask ReportFormat
}

// Validate reports every problem of the configuration, joined; nil if there is none.
func (c ReportsConfig) Validate() error {
	var problems []error
	if c.Weights >= weightSources {
		problems = append(problems, fmt.Errorf("evenkeel: ReportsConfig.Weights is %d, want at most %d", c.Weights, weightSources-1))
	}
	problems = append(problems, c.Weight.Validate(), c.Feedback.Validate())
	if c.OutOfBand != 0 && (c.OutOfBand < minOutOfBand || c.OutOfBand > maxOutOfBand) {
		problems = append(problems, fmt.Errorf("evenkeel: ReportsConfig.OutOfBand is %v, want 0, or %v to %v", c.OutOfBand, minOutOfBand, maxOutOfBand))
	}
	if c.Ask >= reportFormats {
		problems = append(problems, fmt.Errorf("evenkeel: ReportsConfig.Ask is %d, want at most %d", c.Ask, reportFormats-1))
	}
	return errors.Join(problems...)
}

// owned returns a copy that shares nothing with c, nil for nil.
func (c *ReportsConfig) owned() *ReportsConfig {
	if c == nil {
		return nil
	}
	own := *c
	own.Weight.Utilization = slices.Clone(c.Weight.Utilization)
	return &own
}

// outOfBandExpiry is for how many intervals a report counts at least, unless Weight.Expiry says otherwise: one may be
// lost or late.
const outOfBandExpiry = 3

// weight returns Weight with the Expiry that goes with OutOfBand. With less than the interval every endpoint would be
// unknown between two reports, and in its blackout after each.
func (c *ReportsConfig) weight() orca.WeightConfig {
	w := c.Weight
	if least := outOfBandExpiry * c.OutOfBand; w.Expiry == 0 && least > defaultExpiry {
		w.Expiry = least
	}
	return w
}

// sameWeights reports whether both make the same weights of the same reports.
func (c *ReportsConfig) sameWeights(o *ReportsConfig) bool {
	return c.Weights == o.Weights && reflect.DeepEqual(c.weight(), o.weight()) && c.Feedback == o.Feedback
}

// sameUnit reports whether what was learnt by o means the same by c.
func (c *ReportsConfig) sameUnit(o *ReportsConfig) bool {
	return slices.Equal(c.Weight.Utilization, o.Weight.Utilization) && c.Weight.ErrorPenalty == o.Weight.ErrorPenalty &&
		(c.Weights == FeedbackWeights) == (o.Weights == FeedbackWeights)
}

func sameReports(a, b *ReportsConfig) bool { return reflect.DeepEqual(a, b) }

// UsesReports reports whether anything is made of load reports that come with answers, so that it is worth
// looking for them: by weights, or by a policy that goes by the expected wait, as the default does.
func (c Config) UsesReports() bool {
	return c.weightSource() != ListedWeights && !c.ignoresWeights() || c.policy().Needs()&picker.NeedSuccess != 0
}

// ignoresWeights reports whether the policy is one that does not look at weights.
func (c Config) ignoresWeights() bool {
	switch c.policy().(type) {
	case picker.RoundRobin, picker.Random:
		return true
	}
	return false
}

// idleReports is the warning that weights from reports have no effect, "" if they have. It is no error: whoever
// changes the policy for a while may leave the rest as it is.
func (c Config) idleReports() string {
	if c.weightSource() == ListedWeights || !c.ignoresWeights() {
		return ""
	}
	return fmt.Sprintf("evenkeel: ReportsConfig.Weights is %v and has no effect: %T does not look at weights", c.Reports.Weights, c.policy())
}

// checkReports refuses weights that move under a policy which would move keys with them.
func (c Config) checkReports() error {
	if _, hashes := c.Policy.(picker.Hash); hashes && c.Reports.Weights != ListedWeights {
		return fmt.Errorf("evenkeel: ReportsConfig.Weights is %v, want %v: %T would move keys with each report", c.Reports.Weights, ListedWeights, c.Policy)
	}
	return nil
}

// weightSource is where weights come from.
func (c Config) weightSource() WeightSource {
	if c.Reports == nil {
		return ListedWeights
	}
	return c.Reports.Weights
}
