package limit

import (
	"errors"
	"sync/atomic"
)

// ErrNoBudget is for a repetition that a [Budget] did not grant.
var ErrNoBudget = errors.New("evenkeel: the budget of retries and hedges is spent")

// Budget bounds the attempts beyond the first that a client makes, retries and hedges
// together: a share of its requests and a few a second over a window, and a share of what
// is in flight at once. So failures cannot multiply the load. What is granted counts until its
// window is over and is never lost for good, whatever became of it.
//
// All methods but SetConfig may be called by any number of goroutines, and allocate
// nothing. Instants are nanoseconds since any fixed origin that is the caller's own; one
// that is older than the latest seen counts as that.
type Budget struct {
	terms    atomic.Pointer[terms] // read by every request
	inFlight []gauge               // a power of two of them; set at construction
	_        [lineBytes]byte

	open   atomic.Int64 // grants in flight
	denied atomic.Uint64
}

// gauge is one stripe of the requests in flight. It may be negative: only the sum counts.
type gauge struct {
	n atomic.Int64
	_ [lineBytes - 8]byte
}

// NewBudget returns a Budget, or every problem of the configuration.
func NewBudget(c BudgetConfig) (*Budget, error) {
	b := &Budget{inFlight: make([]gauge, stripeCount())}
	if err := b.SetConfig(c); err != nil {
		return nil, err
	}
	return b, nil
}

// SetConfig changes the configuration from here on. What has happened in the window counts
// on, unless Window changes: then an empty one begins, and its reserve is there anew. A
// BudgetConfig that is not valid changes nothing. Calls must not overlap.
func (b *Budget) SetConfig(c BudgetConfig) error {
	if err := c.Validate(); err != nil {
		return err
	}
	var l *ledger
	if old := b.terms.Load(); old != nil && old.ledger.slice == int64(c.window())/slices {
		l = old.ledger
	} else {
		l = newLedger(c.window())
	}
	b.terms.Store(c.terms(l))
	return nil
}

// Begin counts a request (not its attempts) that begins at instant now. Each must be
// followed by one [Budget.End].
func (b *Budget) Begin(now int64) {
	b.gauge().n.Add(1)
	b.terms.Load().ledger.deposit(now)
}

// End ends a request.
func (b *Budget) End() { b.gauge().n.Add(-1) }

func (b *Budget) gauge() *gauge { return &b.inFlight[int(stripeHint())&(len(b.inFlight)-1)] }

// InFlight returns the number of requests in flight, without repetitions.
func (b *Budget) InFlight() (n int64) {
	for i := range b.inFlight {
		n += b.inFlight[i].n.Load()
	}
	return max(n, 0)
}

// Grant is the permission for one more attempt. It is a small value: keep it in one
// variable and call its methods on that. The zero Grant is ended. The methods of one Grant
// must not be called concurrently.
type Grant struct {
	budget *Budget
	ledger *ledger
	slice  int64
}

// Try asks for one more attempt at instant now; ok is false if there is none. A Grant
// counts as in flight from here, the wait before a retry included, until its End.
func (b *Budget) Try(now int64) (g Grant, ok bool) {
	t := b.terms.Load()
	if t.disabled {
		return Grant{}, true
	}
	if !b.enter(t) {
		b.denied.Add(1)
		return Grant{}, false
	}
	slice, ok := t.ledger.withdraw(t.ledger.sliceAt(now), t)
	if !ok {
		b.open.Add(-1)
		b.denied.Add(1)
		return Grant{}, false
	}
	return Grant{b, t.ledger, slice}, true
}

// enter counts one more in flight if it may be.
func (b *Budget) enter(t *terms) bool {
	inFlight := int64(-1) // not added up: atOnce is mostly enough
	for {
		open := b.open.Load()
		if (open+1)*milli > t.atOnce {
			if inFlight < 0 {
				inFlight = b.InFlight()
			}
			if (open+1)*milli > inFlight*t.inFlight {
				return false
			}
		}
		if b.open.CompareAndSwap(open, open+1) {
			return true
		}
	}
}

// Balance returns how many more attempts the window holds at instant now, rounded down.
// What is in flight at once may allow fewer.
func (b *Budget) Balance(now int64) int64 {
	t := b.terms.Load()
	return max(t.ledger.left(t.ledger.sliceAt(now), t), 0) / milli
}

// Open returns the number of grants in flight.
func (b *Budget) Open() int64 { return b.open.Load() }

// Denied returns how often Try has refused.
func (b *Budget) Denied() uint64 { return b.denied.Load() }

// End ends the attempt, however it went. A second call does nothing.
func (g *Grant) End() {
	if g.budget != nil {
		g.budget.open.Add(-1)
		g.budget = nil
	}
}

// Return gives the grant back: the attempt was not made after all. After End, and a second
// time, it does nothing.
func (g *Grant) Return() {
	if g.budget != nil {
		// If its slice has gone, so has what it took.
		g.ledger.refunds.add(g.slice, 1)
		g.End()
	}
}
