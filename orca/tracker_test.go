package orca

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"
)

const ms = int64(time.Millisecond)

func TestTrackerCountsRates(t *testing.T) {
	tr := NewTracker(TrackerConfig{Window: 5 * time.Second})
	var r Report
	tr.Report(&r, 0)
	if r.QPS != 0 || r.EPS != 0 || r.Has(CPU) {
		t.Errorf("at the start: %+v", r)
	}
	now := int64(0)
	run := func(seconds, qps, failEach int) {
		for i := range seconds * qps {
			now += int64(time.Second) / int64(qps)
			kind := Served
			if failEach > 0 && i%failEach == 0 {
				kind = Failed
			}
			tr.End(tr.Begin(now-2*ms), now, kind)
			tr.Report(&r, now)
		}
	}
	run(1, 100, 10)
	if math.Abs(r.QPS-100) > 2 || math.Abs(r.EPS-10) > 2 {
		t.Errorf("after a second of 100 with every tenth failing: %v, %v", r.QPS, r.EPS)
	}
	run(5, 200, 0)
	// One second of 100, then 200, averaged over the window: what is left of the 100 is e^-1, or
	// less of the plain mean.
	if r.QPS < 160 || r.QPS > 190 {
		t.Errorf("after five seconds of 200: %v", r.QPS)
	}
	run(30, 200, 0)
	if math.Abs(r.QPS-200) > 1 || r.EPS > 0.1 {
		t.Errorf("after thirty more: %v, %v", r.QPS, r.EPS)
	}
	now += int64(time.Minute)
	tr.Report(&r, now)
	if r.QPS > 3.4 { // the minute's one measurement
		t.Errorf("a minute after the last request: %v", r.QPS)
	}
}

func TestTrackerReportsTheMedianAtTheNumberInFlight(t *testing.T) {
	tr := NewTracker(TrackerConfig{})
	source := rand.New(rand.NewPCG(1, 2))
	now := int64(0)
	// A server that takes 1 ms for each request in flight, give or take.
	at := func(met int) {
		calls := make([]Call, 0, met+1)
		for range met {
			calls = append(calls, tr.Begin(now))
		}
		for range 20 {
			c := tr.Begin(now)
			now += int64(float64(ms)*(0.8+0.4*source.Float64())) * int64(met+1)
			tr.End(c, now, Served)
			for range 3 {
				c = tr.Begin(now)
				now += 1000
				tr.End(c, now, Failed) // fast, and no latency
			}
			tr.End(tr.Begin(now-int64(time.Hour)), now, Streamed)
		}
		for _, c := range calls {
			tr.End(c, now, Streamed)
		}
	}
	for _, met := range []int{0, 3, 20} {
		at(met)
	}
	var r Report
	for _, inFlight := range []int{0, 3, 20} {
		calls := make([]Call, inFlight)
		for i := range calls {
			calls[i] = tr.Begin(now)
		}
		tr.Report(&r, now)
		us, ok := r.Named.Get(LatencyMetric)
		if want := 1000 * float64(inFlight+1); !ok || us < 0.8*want || us > 1.2*want {
			t.Errorf("with %d in flight: %v µs, %v, want about %v", inFlight, us, ok, want)
		}
		if rif, _ := r.Named.Get(InFlightMetric); rif != float64(inFlight) || tr.InFlight() != int64(inFlight) {
			t.Errorf("%v in flight, want %d", rif, inFlight)
		}
		for _, c := range calls {
			tr.End(c, now, Streamed)
		}
	}
	tr.Report(&r, now+int64(time.Minute))
	if us, ok := r.Named.Get(LatencyMetric); ok {
		t.Errorf("a minute later there is still a latency: %v", us)
	}
}

// A bucket against the definition: the median of the last sixteen, as of each fourth, within the window.
func TestMedianOfABucketAgainstTheDefinition(t *testing.T) {
	source := rand.New(rand.NewPCG(5, 6))
	const window = 10 * int64(time.Second)
	var m medians
	type sample struct{ ns, at int64 }
	var last []sample
	want, found := int64(0), int64(-1)
	now := int64(0)
	for i := range 5000 {
		now += source.Int64N(400 * ms)
		if source.IntN(100) == 0 {
			now += source.Int64N(2 * window)
		}
		ns := int64(math.Exp(source.Float64()*20)) + 64
		m.add(5, ns, now, window)
		if last = append(last, sample{ns, now}); len(last) > medianSamples {
			last = last[1:]
		}
		if n := i + 1; n == 1 || n%medianEach == 0 {
			var fresh []int64
			for _, s := range last {
				if now>>sampleTick-s.at>>sampleTick <= window>>sampleTick+1 {
					fresh = append(fresh, s.ns>>sampleUnit<<sampleUnit)
				}
			}
			slices.Sort(fresh)
			want, found = fresh[len(fresh)/2], now
		}
		got, ok := m.at(5, now, window)
		if wantOK := now>>sampleTick-found>>sampleTick <= window>>sampleTick+1; ok != wantOK || ok && got != want {
			t.Fatalf("after %d: %d, %v, want %d, %v", i, got, ok, want, wantOK)
		}
	}
}

func TestMedianBucketsKeepOrder(t *testing.T) {
	last := 0
	for n := range int64(1 << 20) {
		b := bucketOf(n)
		if b != last && b != last+1 {
			t.Fatalf("%d is in bucket %d after %d", n, b, last)
		}
		last = b
	}
	if bucketOf(7) != 7 || bucketOf(8) != 8 || bucketOf(9) != 8 || bucketOf(10) != 9 || bucketOf(-1) != 0 || bucketOf(math.MaxInt64) != medianBuckets-1 {
		t.Error("buckets have moved")
	}
	// The nearest is asked if there is none.
	var m medians
	m.add(40, 5000*64, 0, 1e9)
	if ns, ok := m.at(3, 0, 1e9); !ok || ns != 5000*64 {
		t.Errorf("%d, %v", ns, ok)
	}
	m.add(-5, -7, -9, 1e9)
	if ns, ok := m.at(0, 0, 1e9); !ok || ns != 64 {
		t.Errorf("a negative time is %d, %v", ns, ok)
	}
}

func TestTrackerAddsWhatTheApplicationKnows(t *testing.T) {
	var add func(*Report)
	tr := NewTracker(TrackerConfig{Add: func(r *Report) { add(r) }})
	var r Report
	at := int64(0)
	report := func(f func(*Report)) {
		add = f
		at += 200 * ms
		tr.Report(&r, at)
	}
	report(func(r *Report) { r.Application = 0.7; r.Named.Set("queue", 3) })
	if v, _ := r.Named.Get("queue"); r.Application != 0.7 || v != 3 || !r.Has(QPS) {
		t.Errorf("%+v", r)
	}
	for _, bad := range []func(*Report){
		func(r *Report) { r.Application = math.NaN() },
		func(r *Report) { r.Named.Set(InFlightMetric, 0) },
		func(r *Report) { r.Named.Set(strings.Repeat("x", MaxBytes), 1) },
		func(r *Report) { *r = Report{CPU: -1} },
	} {
		if report(bad); r.Application != 0 || r.Check() != nil || len(r.Named) != 1 {
			t.Errorf("what is not valid is sent: %+v", r)
		}
	}
	// No more often than ten times a second.
	calls := 0
	add = func(*Report) { calls++ }
	for range 1000 {
		at += ms
		tr.Report(&r, at)
	}
	if calls > 10 {
		t.Errorf("Add was called %d times in a second", calls)
	}
}

func TestTrackerReportsProcessorTime(t *testing.T) {
	used, fails := 100.0, false
	tr := NewTracker(TrackerConfig{CPU: func() (float64, float64, error) {
		if fails {
			return 0, 0, errors.New("gone")
		}
		return used, 4, nil
	}})
	var r Report
	at := int64(0)
	step := func(seconds float64) {
		at += int64(time.Second)
		used += seconds
		tr.Report(&r, at)
	}
	for range 60 {
		step(3)
	}
	if math.Abs(r.CPU-0.75) > 1e-6 || !r.Has(CPU) {
		t.Errorf("three of four processors: %v", r.CPU)
	}
	fails = true
	step(3)
	fails = false
	step(1000)
	if math.Abs(r.CPU-0.75) > 1e-6 {
		t.Errorf("time that passed unread counts: %v", r.CPU)
	}
	step(-500)
	if r.CPU < 0 || r.CPU > 0.75 {
		t.Errorf("time that went back: %v", r.CPU)
	}
}

func TestCgroupCPU(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	stat := file("usage_usec 2500000\nuser_usec 2000000\n")
	for _, c := range []struct {
		name       string
		fs         fstest.MapFS
		seconds    float64
		processors float64 // 0: those of Go
		fails      bool
	}{
		{name: "a service", fs: fstest.MapFS{"proc/self/cgroup": file("0::/a/b.service\n"), "sys/fs/cgroup/a/b.service/cpu.stat": stat,
			"sys/fs/cgroup/a/b.service/cpu.max": file("150000 100000\n")}, seconds: 2.5, processors: 1.5},
		{name: "no quota", fs: fstest.MapFS{"proc/self/cgroup": file("1:cpu:/x\n0::/a\n"), "sys/fs/cgroup/a/cpu.stat": stat,
			"sys/fs/cgroup/a/cpu.max": file("max 100000\n")}, seconds: 2.5},
		{name: "a container", fs: fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/cpu.stat": stat,
			"sys/fs/cgroup/cpu.max": file("50000 100000\n")}, seconds: 2.5, processors: 0.5},
		{name: "a path of the host", fs: fstest.MapFS{"proc/self/cgroup": file("0::/../outside\n"), "sys/fs/cgroup/cpu.stat": stat}, seconds: 2.5},
		{name: "version 1", fs: fstest.MapFS{"proc/self/cgroup": file("4:cpu:/x\n")}, fails: true},
		{name: "no statistics", fs: fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/cpu.stat": file("nr_periods 0\n")}, fails: true},
		{name: "elsewhere", fs: fstest.MapFS{}, fails: true},
	} {
		cpu, err := NewCgroupCPU(c.fs)
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil {
			continue
		}
		seconds, processors, err := cpu.Read()
		if err != nil || seconds != c.seconds || c.processors != 0 && processors != c.processors || !(processors > 0) {
			t.Errorf("%s: %v s of %v, %v", c.name, seconds, processors, err)
		}
	}
}

// Nothing is lost however many count at once, and the counts end at what was counted.
func TestTrackerCountsAllOfMany(t *testing.T) {
	tr := NewTracker(TrackerConfig{})
	const callers, each = 8, 2000
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			var r Report
			for i := range each {
				c := tr.Begin(tr.Now())
				if i%100 == 0 {
					tr.Report(&r, tr.Now())
				}
				tr.End(c, tr.Now(), Kind(i%3))
			}
		})
	}
	wg.Wait()
	requests, failures := uint64(0), uint64(0)
	for i := range tr.ended {
		requests += tr.ended[i].requests.Load()
		failures += tr.ended[i].failures.Load()
	}
	if requests != callers*each || failures != callers*667 || tr.InFlight() != 0 {
		t.Errorf("%d requests, %d failures, %d in flight", requests, failures, tr.InFlight())
	}
}

// It is on the path of every request.
func TestTrackerDoesNotAllocate(t *testing.T) {
	tr := NewTracker(TrackerConfig{})
	var r Report
	now := int64(0)
	tr.Report(&r, now)
	tr.due.Store(math.MaxInt64)
	if n := testing.AllocsPerRun(200, func() {
		now += ms
		tr.End(tr.Begin(now), now+1000, Served)
		tr.Report(&r, now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
