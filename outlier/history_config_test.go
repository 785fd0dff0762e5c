package outlier_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel/internal/testcost"
	"github.com/evenkeel/evenkeel/outlier"
)

// configure is a change of rules: who is out stays out and comes back by the new ones, and what was counted by
// others than these is forgotten.
func (m *model) configure(mode outlier.Mode, percent float64) {
	was := m.mode
	if was == mode && m.cap == percent {
		return // not even a look at who fails
	}
	m.mode, m.cap = mode, percent
	if was != mode {
		for _, h := range m.hosts {
			m.adopt(h, was)
		}
		for id, h := range m.gone {
			m.adopt(h, was)
			if mode != outlier.Soft {
				delete(m.gone, id)
			}
		}
	}
	m.settle()
}

func (m *model) adopt(h *mHost, was outlier.Mode) {
	h.run, h.gw, h.local = len(h.log), len(h.log), len(h.log)
	h.goodRun = 0
	switch {
	case h.out && m.mode == outlier.Soft:
		h.failed, h.holder, h.probeAt = 0, 0, m.now
	case h.out && was == outlier.Soft:
		h.holder, h.mult, h.outAt = 0, max(h.mult, 1), m.now
		h.term = int64(min(30*h.mult, 300)) * second
	case h.ramping:
		h.ramping, h.failed = false, 0
	}
	h.restart(m.now)
}

// reconfigure changes both. Time passes, as the permits of one instant are alike.
func (h *history) reconfigure(arg byte) {
	h.b.t.Helper()
	h.trace = append(h.trace, "configure/"+string('0'+rune(arg%12)))
	h.advance(1)
	h.m.configure(outlier.Mode(arg%3), []float64{10, 34, 50, 100}[arg/3%4])
	if _, err := h.b.d.SetConfig(modelConfig(h.m), h.b.now); err != nil {
		h.b.t.Fatal(err)
	}
	h.compare()
}

// Rules that change in the middle of anything leave the Detector where the model is.
func TestDetectorFollowsTheModelThroughChangesOfRules(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 58))
	saw := map[string]int{}
	histories := 800
	if testcost.Race {
		histories = 100
	}
	for range histories {
		h := newHistory(t, byte(r.IntN(256)))
		h.saw = saw
		for range 300 {
			if r.IntN(25) == 0 {
				h.reconfigure(byte(r.IntN(256)))
			} else {
				h.step(byte(r.IntN(256)), byte(r.IntN(256)))
			}
		}
	}
	for _, what := range []string{"soft: probing", "soft: ramping", "soft: distress", "envoy: ejected", "a50: ejected", "envoy: panic",
		"a50: last consecutive failures", "soft: last success rate"} { // of the rules before
		if saw[what] < 5 && !testcost.Race {
			t.Errorf("%s came %d times, want 5 at least", what, saw[what])
		}
	}
}

// FuzzDetectorFollowsTheModelThroughChangesOfRules reads a history from bytes in which the number 255 changes the rules.
func FuzzDetectorFollowsTheModelThroughChangesOfRules(f *testing.F) {
	r := rand.New(rand.NewPCG(4, 58))
	for kind := range 24 {
		seed := []byte{byte(kind + 24*(kind%9))}
		for i := range 200 {
			seed = append(seed, byte(r.IntN(256)))
			if i%20 == 0 {
				seed = append(seed, 255, byte(r.IntN(12)))
			}
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		h := newHistory(t, data[0])
		for data = data[1:]; len(data) > 1; data = data[2:] {
			if data[0] == 255 {
				h.reconfigure(data[1])
			} else {
				h.step(data[0], data[1])
			}
		}
	})
}

// The model knows each mode of the package, the default too, and a history of each tries what the mode can do.
func TestTheModelKnowsEveryMode(t *testing.T) {
	for _, mode := range modes {
		m := &model{mode: mode, cap: 100}
		if c := modelConfig(m); c.Mode != mode || strings.Contains(c.Mode.String(), "invalid") {
			t.Errorf("%v", c.Mode)
		}
	}
}
