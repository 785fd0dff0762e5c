package orca

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Names of the metrics that a [Tracker] reports.
const (
	// InFlightMetric is the number of requests that the backend has begun and not
	// ended, over all of its clients. The one that carries the report is among them in a
	// header, which is sent before its end, and not in a trailer.
	InFlightMetric = "rif"

	// LatencyMetric is the median time in microseconds of requests that began when about
	// as many were in flight as now are.
	LatencyMetric = "latency_us"
)

// TrackerConfig says what a [Tracker] reports. The zero TrackerConfig is the documented default: rates, the number in
// flight and the latency, which policies go by. Weights need a utilization beside the rate: whoever has clients that take
// weights from reports (evenkeel.ReportsConfig) sets CPU or Add.
type TrackerConfig struct {
	// Window is the time constant of the averages of rates and utilizations, and how old a
	// latency may be to count. 0 or less means 5 s.
	Window time.Duration

	// CPU returns the processor time used so far, in seconds, and how many processors
	// there are to use. nil: no CPU utilization is reported. It is called at most ten times
	// a second, one call at a time, at the end of a request. If it panics, so does what called [Tracker.Report], and
	// the report goes without. See [CgroupCPU].
	CPU func() (seconds, processors float64, err error)

	// Add may complete a report: set what only the application knows, such as its
	// utilization. It is called as CPU is, with the report as it will be sent but for the
	// number in flight and the latency, and keeps no pointer to it. What it makes of the
	// report is checked: if it is not valid, or if Add panics, it counts as not called.
	Add func(*Report)
}

// refreshEach is the least time between two measurements of rates.
const refreshEach = int64(100 * time.Millisecond)

// trackerStripes is how many counters the requests that end are spread over.
const trackerStripes = 8

// Tracker counts the requests of a backend, to report them. All methods may be called by
// any number of goroutines. It must not be copied.
//
// A request that begins adds to the number in flight, which all requests share; one that ends
// adds to that, to one of eight counters, and to the samples of those that met about as many
// others. Rates are measured at most ten times a second by whoever reports then.
type Tracker struct {
	config TrackerConfig // set at construction, defaults filled in
	start  time.Time     // set at construction: the origin of Now

	_        [64]byte
	inFlight atomic.Int64
	_        [56]byte
	ended    [trackerStripes]endedCounter
	medians  medians

	measured atomic.Pointer[Report] // immutable; never nil
	due      atomic.Int64           // instant of the next measurement

	mu    sync.Mutex // only ever tried: nobody waits for it
	rates rates      // guarded by mu
}

// endedCounter has a pair of cache lines of its own.
type endedCounter struct {
	requests atomic.Uint64
	failures atomic.Uint64
	_        [112]byte
}

// NewTracker returns a tracker without any requests.
func NewTracker(c TrackerConfig) *Tracker {
	if c.Window <= 0 {
		c.Window = 5 * time.Second
	}
	t := &Tracker{config: c, start: time.Now()}
	t.measured.Store(new(Report))
	t.rates.measure(t, 0)
	if c.CPU != nil {
		t.rates.use(c.CPU, 0, c.Window.Seconds())
	}
	t.due.Store(refreshEach)
	return t
}

// Now returns the nanoseconds since the tracker was made: the instants of its middleware and
// interceptors. Who calls Begin and End with instants of another origin uses no such adapters.
func (t *Tracker) Now() int64 { return int64(time.Since(t.start)) }

// Call is one request in progress.
type Call struct {
	began int64
	met   int64 // requests in flight before it
}

// Kind of an ended request.
type Kind uint8

const (
	// Served counts, and its time is a latency.
	Served Kind = iota
	// Failed counts, and as an error too; its time is no latency, since failing fast is not fast.
	Failed
	// Streamed counts; its time says how long somebody listened.
	Streamed
)

// Begin counts a request that begins at instant now. End has to be called for it exactly once.
func (t *Tracker) Begin(now int64) Call {
	return Call{began: now, met: t.inFlight.Add(1) - 1}
}

// End counts the end of a request.
func (t *Tracker) End(c Call, now int64, kind Kind) {
	t.inFlight.Add(-1)
	// Requests at the same time have met different numbers, so that they count apart.
	counter := &t.ended[uint64(c.met)%trackerStripes]
	counter.requests.Add(1)
	switch kind {
	case Failed:
		counter.failures.Add(1)
	case Served:
		t.medians.add(c.met, now-c.began, now, int64(t.config.Window))
	}
}

// InFlight returns the number of requests that have begun and not ended.
func (t *Tracker) InFlight() int64 { return t.inFlight.Load() }

// Report makes r what there is to report at instant now, reusing its memory: rates, the CPU's
// utilization if there is a source for it, what Add adds, and as named metrics the number in flight
// and the latency at that number. Rates are reported once a tenth of a second has been
// measured, the latency once there is one.
func (t *Tracker) Report(r *Report, now int64) {
	if t.isDue(now) && t.mu.TryLock() {
		t.refreshIfDue(now)
	}
	m := t.measured.Load()
	named, utilizations, costs := r.Named[:0], r.Utilizations[:0], r.Costs[:0]
	*r = *m
	r.Named = append(named, m.Named...)
	r.Utilizations = append(utilizations, m.Utilizations...)
	r.Costs = append(costs, m.Costs...)

	inFlight := max(t.inFlight.Load(), 0)
	r.Named = append(r.Named, Metric{InFlightMetric, float64(inFlight)})
	if ns, ok := t.medians.at(inFlight, now, int64(t.config.Window)); ok {
		r.Named = append(r.Named, Metric{LatencyMetric, float64(ns) / 1e3})
	}
}

// isDue reports whether rates are to be measured: at once, too, when the clock has been set back.
func (t *Tracker) isDue(now int64) bool {
	due := t.due.Load()
	return now >= due || due-now > refreshEach
}

// refreshIfDue measures rates unless somebody just has. The caller has locked mu, which this unlocks.
func (t *Tracker) refreshIfDue(now int64) {
	defer t.mu.Unlock()
	if t.isDue(now) {
		t.refresh(now)
	}
}

// refresh measures rates. The caller holds mu.
func (t *Tracker) refresh(now int64) {
	seconds := t.rates.measure(t, now)
	next := t.rates.report(false)
	// Deferred, as CPU and Add may panic. Servers survive that: the rates must not stay as they are for good.
	defer func() {
		t.measured.Store(&next)
		t.due.Store(now + refreshEach)
	}()
	if t.config.CPU != nil {
		t.rates.use(t.config.CPU, seconds, t.config.Window.Seconds())
		next = t.rates.report(true)
	}
	if t.config.Add != nil {
		own := next.Clone()
		t.config.Add(&own)
		if own.valid() {
			next = own
		}
	}
}

// valid reports whether a report that Add has seen may be sent with the tracker's own two metrics.
func (r *Report) valid() bool {
	_, a := r.Named.Get(InFlightMetric)
	_, b := r.Named.Get(LatencyMetric)
	entries := len(r.Named) + len(r.Utilizations) + len(r.Costs)
	return !a && !b && entries <= MaxEntries-2 && r.size() <= MaxBytes*3/4-64 && r.Check() == nil
}

// size returns an upper bound of the bytes of the binary form: in base64 a report may be
// MaxBytes long too.
func (r *Report) size() int {
	n := 5 * 9
	for _, group := range [...]Metrics{r.Named, r.Utilizations, r.Costs} {
		for _, m := range group {
			n += len(m.Name) + 16
		}
	}
	return n
}

// rates are what is measured from one refresh to the next.
type rates struct {
	at                 int64 // instant of the last measurement
	requests, failures uint64
	cpu                float64 // seconds
	cpuKnown           bool    // cpu is of instant at

	qps, eps, busy mean
}

// mean averages a rate: plainly while it is younger than the window, exponentially from then on.
type mean struct{ value, seconds float64 }

func (m *mean) add(v, seconds, window float64) {
	m.seconds += seconds
	m.value += (v - m.value) * max(seconds/m.seconds, -math.Expm1(-seconds/window))
}

// measure adds the time since the last call, and returns it in seconds.
func (r *rates) measure(t *Tracker, now int64) (seconds float64) {
	requests, failures := uint64(0), uint64(0)
	for i := range t.ended {
		// Failures first: they were counted second, so that they are never more than requests.
		failures += t.ended[i].failures.Load()
		requests += t.ended[i].requests.Load()
	}
	seconds = float64(now-r.at) / 1e9
	window := t.config.Window.Seconds()
	if seconds > 0 {
		r.qps.add(float64(requests-r.requests)/seconds, seconds, window)
		r.eps.add(float64(failures-r.failures)/seconds, seconds, window)
	}
	r.requests, r.failures, r.at = requests, failures, now
	return seconds
}

// use adds what was used of the processors in the time that was measured last.
func (r *rates) use(source func() (seconds, processors float64, err error), seconds, window float64) {
	known := r.cpuKnown
	r.cpuKnown = false // unless source returns
	cpu, processors, err := source()
	ok := err == nil && cpu >= 0 && cpu <= math.MaxFloat64 && processors > 0
	if ok && known && seconds > 0 {
		r.busy.add(max(cpu-r.cpu, 0)/seconds/processors, seconds, window)
	}
	r.cpu, r.cpuKnown = cpu, ok
}

// report returns the averages.
func (r *rates) report(cpu bool) Report {
	next := Report{QPS: r.qps.value, EPS: r.eps.value, Present: QPS | EPS}
	if cpu && r.busy.seconds > 0 {
		next.CPU = r.busy.value
		next.Present |= CPU
	}
	return next
}
