package outlier_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel/internal/testcost"
	"github.com/evenkeel/evenkeel/outlier"
)

// history runs the same operations on a Detector and on the model, and compares all that
// can be seen after each.
type history struct {
	b     *bench
	m     *model
	open  []request
	names []string
	trace []string
	saw   map[string]int // how often something happened, so that a run is known to try it
}

type request struct {
	real  *outlier.Host
	token outlier.Token
	host  *mHost
	mtok  mToken
}

// newHistory takes the mode, cap, split and number of hosts from the byte.
func newHistory(t *testing.T, kind byte) *history {
	m := &model{mode: outlier.Mode(kind % 3), cap: []float64{10, 34, 50, 100}[kind/3%4], split: kind/12%2 == 1, gone: map[string]*mHost{}}
	h := &history{saw: map[string]int{}, m: m, b: newBench(t, modelConfig(m))}
	for i := range 1 + int(kind)/24 {
		h.names = append(h.names, fmt.Sprintf("h%d", i))
	}
	h.list(0)
	return h
}

// list updates to the hosts whose bit in the mask is 0, the first one rotated.
func (h *history) list(mask byte) {
	var list []outlier.Member
	for i := range h.names {
		k := (i + int(mask>>5)) % len(h.names)
		if mask>>(k%5)&1 == 0 || k >= 5 {
			x := outlier.Member{ID: h.names[k]}
			if old := h.m.find(x.ID); old != nil {
				x.Standing = old.standing
			}
			list = append(list, x)
		}
	}
	if _, err := h.b.d.Update(list, h.b.now); err != nil {
		h.b.t.Fatal(err)
	}
	h.m.update(list)
}

// step does the operation that two bytes say.
func (h *history) step(op, arg byte) {
	h.b.t.Helper()
	d, m := h.b.d, h.m
	h.trace = append(h.trace, fmt.Sprintf("%d/%d", op, arg))
	var i int
	if n := d.Len(); n > 0 {
		i = int(arg) % n
	}
	switch {
	case op < 110: // a result of a request that begins and ends now
		if d.Len() > 0 {
			e := outlier.Event(op % 14) // two of which are no events
			if op > 40 {
				e = []outlier.Event{outlier.Succeeded, outlier.Failed, outlier.Succeeded, outlier.TimedOut, outlier.Succeeded, outlier.Connected, outlier.Succeeded}[op%7]
			}
			r := h.begin(i)
			for range 1 + arg>>6 {
				h.end(r, e)
			}
		}
	case op < 130:
		if d.Len() > 0 {
			h.open = append(h.open, h.begin(i))
		}
	case op < 160:
		if len(h.open) > 0 {
			k := int(arg) % len(h.open)
			e := []outlier.Event{outlier.Succeeded, outlier.Failed, outlier.Ignored, outlier.Throttled, outlier.TimedOut}[op%5]
			h.end(h.open[k], e)
			h.open = slices.Delete(h.open, k, k+1)
		}
	case op < 185:
		h.advance(int64(arg) * second / 8)
	case op < 190:
		h.advance(int64(arg) * second)
	case op < 215:
		d.Sweep(h.b.now)
		m.sweep()
	case op < 230:
		h.probe(i)
	case op < 240:
		if d.Len() > 0 {
			s := outlier.Standing(arg >> 5 % 4)
			if arg&1 == 0 {
				s = outlier.Usable
			}
			d.SetStanding(i, s, h.b.now)
			m.stand(m.hosts[i], s)
			m.settle()
		}
	case op < 246:
		if d.Len() > 0 {
			d.CheckPassed(i, h.b.now)
			m.check(m.hosts[i])
		}
	default:
		h.list(arg)
	}
	h.compare()
}

func (h *history) advance(by int64) {
	h.b.now += by
	h.m.now = h.b.now
}

func (h *history) begin(i int) request {
	r, mh := h.b.d.Host(i), h.m.hosts[i]
	return request{real: r, token: r.Token(), host: mh, mtok: mToken{epoch: mh.epoch}}
}

func (h *history) end(r request, e outlier.Event) {
	h.b.finish(r.real, e, r.token)
	h.m.observe(r.host, e, r.mtok)
}

func (h *history) probe(i int) {
	if h.b.d.Len() == 0 {
		return
	}
	r := request{real: h.b.d.Host(i), host: h.m.hosts[i]}
	var got, want bool
	r.token, got = r.real.TryProbe(h.b.now)
	r.mtok, want = h.m.probe(r.host)
	if got != want {
		h.b.t.Fatalf("%v\na permit for %s: %v, the model says %v", h.trace, r.host.id, got, want)
	}
	if got {
		h.open = append(h.open, r)
	}
}

func (h *history) compare() {
	h.b.t.Helper()
	d, m := h.b.d, h.m
	note := func(what string) { h.saw[m.mode.String()+": "+what]++ }
	if m.panics {
		note("panic")
	}
	if m.distress {
		note("distress")
	}
	var may []int32
	for i, mh := range m.hosts {
		want := "available"
		switch {
		case mh.out && m.mode == outlier.Soft && (mh.holder != 0 || m.now >= mh.probeAt):
			want = "probing"
		case mh.out:
			want = "ejected"
		case mh.ramping:
			want = "ramping"
		}
		s := d.Stats(i, h.b.now)
		note(s.State.String())
		note("last " + s.Reason.String())
		if s.Capped > 0 {
			note("capped")
		}
		if s.Spared > 0 {
			note("spared")
		}
		if s.State.String() != want || s.Epoch != mh.epoch || s.Multiplier != mh.mult || m.mode == outlier.Soft && s.ProbesFailed != mh.failed {
			h.b.t.Fatalf("%v cap %v\n%v\n%s is %v, epoch %d, multiplier %d, %d probes failed; the model says %s, %d, %d, %d", m.mode, m.cap, h.trace,
				mh.id, s.State, s.Epoch, s.Multiplier, s.ProbesFailed, want, mh.epoch, mh.mult, mh.failed)
		}
		if mh.standing == outlier.Usable && (!mh.out || m.panics) || mh.standing == outlier.Failing && m.panics {
			may = append(may, int32(i))
		}
	}
	due := false
	for _, mh := range m.hosts {
		due = due || m.mode == outlier.Soft && mh.out && mh.standing == outlier.Usable && mh.holder == 0 && m.now >= mh.probeAt
	}
	// Taken permits may seem due until the owner's next call.
	if due && !d.ProbeDue(h.b.now, true) {
		h.b.t.Fatalf("%v\na probe is due, and ProbeDue does not say so", h.trace)
	}
	if got := d.Available(nil); !slices.Equal(got, may) || d.Panicking() != m.panics || d.Distressed() != m.distress {
		h.b.t.Fatalf("%v\n%v may be picked, panic %v, distress %v; the model says %v, %v, %v", h.trace, got, d.Panicking(), d.Distressed(),
			may, m.panics, m.distress)
	}
}

func TestDetectorFollowsTheModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 58))
	saw := map[string]int{}
	histories := 1200
	if testcost.Race { // it is one goroutine
		histories = 200
	}
	for range histories {
		h := newHistory(t, byte(r.IntN(256)))
		h.saw = saw
		for range 300 {
			h.step(byte(r.IntN(256)), byte(r.IntN(256)))
		}
	}
	for mode, list := range map[string]string{
		"soft":  "available ejected probing ramping panic distress capped spared last-consecutive-failures last-failure-rate",
		"envoy": "available ejected panic capped last-consecutive-failures last-consecutive-gateway-failures last-consecutive-local-failures last-success-rate last-failure-percentage",
		"a50":   "available ejected capped last-success-rate last-failure-percentage",
	} {
		for what := range strings.FieldsSeq(list) {
			what = mode + ": " + strings.ReplaceAll(what, "-", " ")
			if saw[what] < 5 && !testcost.Race {
				t.Errorf("%s came %d times, want 5 at least", what, saw[what])
			}
		}
	}
}

// FuzzDetectorFollowsTheModel reads a history from bytes: what kind, then operations.
func FuzzDetectorFollowsTheModel(f *testing.F) {
	r := rand.New(rand.NewPCG(2, 58))
	for kind := range 24 {
		seed := []byte{byte(kind + 24*(kind%9))}
		for range 200 {
			seed = append(seed, byte(r.IntN(256)))
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		h := newHistory(t, data[0])
		for data = data[1:]; len(data) > 1; data = data[2:] {
			h.step(data[0], data[1])
		}
	})
}
