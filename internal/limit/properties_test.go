package limit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// budgetOp is one operation of a random history: what, of whom, and how long after the last.
type budgetOp struct{ what, whom, gap int64 }

// budgetHistory is a Budget and, beside it, a log of what it was told and what it granted, from which
// nothing is ever forgotten.
type budgetHistory struct {
	config   BudgetConfig
	budget   *Budget
	now      int64
	requests []int64 // when they began
	granted  []int64 // when; those that were given back excepted
	running  int64
	held     []heldAt
}

type heldAt struct {
	grant Grant
	at    int64
}

// do does one operation and returns what is wrong with a grant.
func (h *budgetHistory) do(o budgetOp) error {
	h.now += o.gap
	switch {
	case o.what < 40:
		h.budget.Begin(h.now)
		h.requests = append(h.requests, h.now)
		h.running++
	case o.what < 60 && h.running > 0:
		h.budget.End()
		h.running--
	case o.what < 85:
		g, ok := h.budget.Try(h.now)
		if !ok {
			break
		}
		h.granted = append(h.granted, h.now)
		h.held = append(h.held, heldAt{g, h.now})
		return h.grantIsPaid()
	case len(h.held) > 0:
		i := int(o.whom) % len(h.held)
		x := h.held[i]
		h.held = append(h.held[:i], h.held[i+1:]...)
		if o.what < 95 {
			x.grant.End()
			break
		}
		x.grant.Return()
		for j, at := range h.granted {
			if at == x.at {
				h.granted = append(h.granted[:j], h.granted[j+1:]...)
				break
			}
		}
	}
	return nil
}

// grantIsPaid checks the window that ends with the latest grant, as long as the budget says, in its ten
// slices: no more grants than its reserve and the share of its requests; and how many are out at once.
func (h *budgetHistory) grantIsPaid() error {
	slice := int64(h.config.window()) / 10
	from := (h.now/slice - 9) * slice
	count := func(list []int64) (n float64) {
		for _, at := range list {
			if at >= from {
				n++
			}
		}
		return n
	}
	perSecond, percent, inFlight, atOnce := h.config.PerSecond, h.config.Percent, h.config.InFlightPercent, float64(h.config.AtOnce)
	most := perSecond*h.config.window().Seconds() + percent/100*count(h.requests)
	if n := count(h.granted); n > most+1e-6 {
		return fmt.Errorf("at %v: %v grants in the window, want at most %v: %v from the reserve and %v %% of %v requests", time.Duration(h.now),
			n, most, perSecond*h.config.window().Seconds(), percent, count(h.requests))
	}
	if n, most := float64(len(h.held)), max(atOnce, inFlight/100*float64(h.running)); n > most+1e-6 {
		return fmt.Errorf("at %v: %v grants at once beside %d requests, want at most %v", time.Duration(h.now), n, h.running, most)
	}
	return nil
}

func budgetRun(c BudgetConfig, ops []budgetOp) (*budgetHistory, error) {
	b, err := NewBudget(c)
	if err != nil {
		return nil, err
	}
	h := &budgetHistory{config: c, budget: b}
	for i, o := range ops {
		if err := h.do(o); err != nil {
			return h, fmt.Errorf("step %d: %w", i, err)
		}
	}
	return h, nil
}

// Granted repetitions are never more than the reserve and the share of the requests, in any window, and never
// more at once than allowed, whatever the settings and whatever comes when. What is wrong is told with the
// shortest beginning that shows it.
func TestGrantsOfEveryWindowArePaidFor(t *testing.T) {
	granted, denied := 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 91))
		c := BudgetConfig{Percent: float64(1 + r.IntN(150)), PerSecond: float64(1+r.IntN(40)) / 10, InFlightPercent: float64(1 + r.IntN(200)),
			AtOnce: 1 + r.IntN(5), Window: time.Duration(1+r.IntN(20)) * time.Second}
		ops := make([]budgetOp, 600)
		for i := range ops {
			ops[i] = budgetOp{r.Int64N(100), r.Int64N(1 << 20), r.Int64N(int64(c.Window) / 50)}
			if r.IntN(100) == 0 {
				ops[i].gap = r.Int64N(2 * int64(c.Window))
			}
		}
		h, err := budgetRun(c, ops)
		for n := range ops {
			if err == nil {
				break
			}
			if _, short := budgetRun(c, ops[:n+1]); short != nil {
				t.Fatalf("seed %d, %+v: %v\nafter %v", seed, c, short, ops[:n+1])
			}
		}
		for _, o := range ops {
			if o.what >= 60 && o.what < 85 {
				denied++
			}
		}
		granted += len(h.granted)
	}
	if denied -= granted; granted < 1000 || denied < 1000 {
		t.Errorf("%d were granted and %d denied or given back, want enough of both", granted, denied)
	}
}
