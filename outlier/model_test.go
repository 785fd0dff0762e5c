package outlier_test

import (
	"math"
	"slices"

	"github.com/evenkeel/evenkeel/outlier"
)

// model is the package written once more, from its documentation, without counters: every
// host keeps a log of all results, and runs, rates and windows are looked up in it.
// It knows the default settings of each mode, but for what modelConfig changes.

type verdict uint8

const (
	vNone  verdict = iota
	vGood          // answers
	vBad           // answers
	vLate          // timeouts in Soft
	vLGood         // local origin
	vLBad          // local origin
	vLater         // an endpoint that asks for less
)

type entry struct {
	v       verdict
	gateway bool
	ignored bool // in no run: a timeout in distress
}

type mHost struct {
	id       string
	standing outlier.Standing
	member   bool
	out      bool
	ramping  bool
	epoch    uint32

	log                 []entry
	run, gw, local      int // where the runs begin in the log
	window, rec0, rec1  int // where the window and the last seconds begin
	windowAt            int64
	lastFail            int64
	rate                float64
	rateAt              int64
	hasRate             bool
	goodRun, failed     int
	probeAt             int64
	holder              int // serial number of the probe that is out
	taken               int64
	outAt, backAt, term int64
	mult                int
	rampAt, leftAt      int64
	forLate             bool
}

type mToken struct {
	epoch  uint32
	serial int
}

type model struct {
	mode      outlier.Mode
	cap       float64
	split     bool
	now       int64
	tick, rec int64
	hosts     []*mHost
	gone      map[string]*mHost
	distress  bool
	until     int64
	panics    bool
	begun     bool // enough have been up once
	serial    int
}

const second = int64(1e9)

// modelConfig is what the model implements: small numbers, so that short histories do much.
func modelConfig(m *model) outlier.Config {
	c := outlier.Config{Mode: m.mode, MaxEjectionPercent: outlier.PercentOf(m.cap)}
	c.Soft.RequestVolume = 6
	c.Envoy.SplitLocalOrigin = m.split
	c.Envoy.EnforceConsecutiveGateway = outlier.PercentOf(100)
	c.Envoy.SuccessRate = outlier.SuccessRate{MinHosts: 3, RequestVolume: 6}
	c.Envoy.FailurePercentage = outlier.FailurePercentage{Enforce: outlier.PercentOf(100), MinHosts: 3, RequestVolume: 6}
	c.A50.SuccessRate = &outlier.SuccessRate{MinHosts: 3, RequestVolume: 6, StdevFactor: 0.9}
	c.A50.FailurePercentage = &outlier.FailurePercentage{MinHosts: 3, RequestVolume: 6}
	return c
}

func (m *model) find(id string) *mHost {
	for _, h := range m.hosts {
		if h.id == id {
			return h
		}
	}
	return nil
}

func (h *mHost) restart(now int64) {
	h.window, h.rec0, h.rec1, h.windowAt, h.hasRate = len(h.log), len(h.log), len(h.log), now, false
}

func (m *model) update(list []outlier.Member) {
	old := m.hosts
	m.hosts = nil
	for _, x := range list {
		var h *mHost
		for _, o := range old {
			if o.id == x.ID {
				h = o
			}
		}
		if g := m.gone[x.ID]; h == nil && g != nil && m.now-g.leftAt <= 60*second {
			h = g
		}
		delete(m.gone, x.ID)
		if h == nil {
			h = &mHost{id: x.ID, standing: x.Standing}
			h.restart(m.now)
		}
		m.hosts = append(m.hosts, h)
	}
	for _, o := range old {
		o.member = slices.Contains(m.hosts, o)
		if !o.member {
			o.leftAt = m.now
			if m.mode == outlier.Soft {
				m.gone[o.id] = o
			}
		}
	}
	for id, g := range m.gone {
		if m.now-g.leftAt > 60*second {
			delete(m.gone, id)
		}
	}
	for len(m.gone) > 2*max(len(old), len(list)) {
		var first *mHost
		for _, g := range m.gone {
			if first == nil || g.leftAt < first.leftAt || g.leftAt == first.leftAt && g.id < first.id {
				first = g
			}
		}
		delete(m.gone, first.id)
	}
	for i, x := range list {
		m.hosts[i].member = true
		m.stand(m.hosts[i], x.Standing)
	}
	m.settle()
}

func (m *model) stand(h *mHost, s outlier.Standing) {
	was := h.standing
	h.standing = s
	if m.mode == outlier.Soft && was == outlier.Failing && s == outlier.Usable && !h.out {
		h.ramping, h.rampAt = true, m.now
	}
}

// tail is the number of entries at the end of the run that are of the kind counted.
func (h *mHost) tail(from int, counts, ends func(entry) bool) (n int, late bool) {
	for i := len(h.log) - 1; i >= from; i-- {
		e := h.log[i]
		if ends(e) {
			break
		}
		if counts(e) {
			n++
			late = late || e.v == vLate
		}
	}
	return n, late
}

func anyBad(e entry) bool  { return !e.ignored && (e.v == vBad || e.v == vLate) }
func anyGood(e entry) bool { return e.v == vGood }

func (h *mHost) count(from int, v verdict) (n int) {
	for _, e := range h.log[from:] {
		if e.v == v {
			n++
		}
	}
	return n
}

func (m *model) fails(h *mHost) bool {
	if h.out {
		return true
	}
	if n, _ := h.tail(h.run, anyBad, anyGood); n >= 2 && m.now-h.lastFail <= 10*second {
		return true
	}
	fast, late, good := h.count(h.rec0, vBad), h.count(h.rec0, vLate), h.count(h.rec0, vGood)
	return fast+late >= 2 && fast+late >= good || late >= 2 && float64(late)/float64(fast+late+good) >= 0.1
}

// guard decides on distress as of now, and pardons when it begins.
func (m *model) guard() bool {
	failing, usable := 0, 0
	for _, h := range m.hosts {
		if h.standing == outlier.Usable {
			usable++
			if m.fails(h) {
				failing++
			}
		}
	}
	if m.mode == outlier.Soft && m.until-m.now <= 9*second && failing >= 2 && float64(failing)/float64(usable) > 0.4 {
		m.until = m.now + 10*second
	}
	was := m.distress
	m.distress = m.mode == outlier.Soft && m.now < m.until
	if m.distress && !was {
		for _, h := range m.hosts {
			if h.out && h.forLate && m.now-h.outAt <= 10*second {
				h.out, h.holder, h.failed, h.goodRun = false, 0, 0, 0
				h.run = len(h.log)
				h.restart(m.now)
			}
		}
	}
	return m.distress
}

// settle is what every call of the owner ends with but Act, which does not look at all hosts.
func (m *model) settle() {
	m.guard()
	m.decide()
}

func (m *model) decide() {
	up, all, accused := 0, 0, 0
	for _, h := range m.hosts {
		if h.standing != outlier.Drained {
			all++
			if h.out || h.standing == outlier.Failing {
				accused++
			}
		}
		if h.standing == outlier.Usable && !h.out {
			up++
		}
	}
	share := float64(up) / float64(all)
	defer func() {
		if all == 0 {
			m.begun = false
		} else if !m.begun && m.panics && accused == 0 {
			m.panics = false // they are on their way up
		} else if !m.panics {
			m.begun = true
		}
	}()
	switch {
	case all == 0 || m.mode == outlier.A50:
		m.panics = false
	case m.mode == outlier.Envoy:
		m.panics = share < 0.5
	case m.panics && m.begun && up < all-1:
		m.panics = share < 0.6
	default:
		m.panics = share < 0.5
	}
}

func (m *model) mayEject(h *mHost) bool {
	out, all := 0, 0
	for _, o := range m.hosts {
		if o.standing == outlier.Usable || m.mode != outlier.Soft && o.standing != outlier.Drained {
			all++
			if o.out {
				out++
			}
		}
	}
	switch m.mode {
	case outlier.Soft:
		return h.standing == outlier.Usable && all > 1 && float64(out+1)/float64(all) <= m.cap/100
	case outlier.Envoy:
		return h.standing != outlier.Drained && float64(out+1)/float64(all) <= m.cap/100
	}
	return h.standing != outlier.Drained && float64(out)/float64(all) < m.cap/100
}

func (m *model) wait(k int) int64 {
	if m.distress {
		return second / 2
	}
	return int64(math.Min(0.5*math.Pow(2, float64(k)), 8) * float64(second))
}

func (m *model) eject(h *mHost) {
	if h.out || !h.member || !m.mayEject(h) {
		return
	}
	h.epoch++
	h.out, h.forLate = true, false
	h.outAt = m.now
	h.run, h.gw, h.local = len(h.log), len(h.log), len(h.log)
	if m.mode == outlier.Soft {
		if h.ramping {
			h.failed++
		} else {
			h.failed = 0
		}
		h.ramping, h.goodRun, h.holder = false, 0, 0
		h.probeAt = m.now + m.wait(h.failed)
		h.hasRate = false
		return
	}
	if m.mode == outlier.A50 || 30*h.mult < 300+30 {
		h.mult++
	}
	h.term = int64(min(30*h.mult, 300)) * second
}

func (m *model) back(h *mHost) {
	h.out, h.backAt, h.holder = false, m.now, 0
	h.run, h.gw, h.local = len(h.log), len(h.log), len(h.log)
	if m.mode == outlier.Soft {
		h.restart(m.now)
		if h.ramping = !m.distress && !m.panics; !h.ramping {
			h.failed = 0
		}
		h.rampAt = m.now
	}
}
