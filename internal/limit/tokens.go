package limit

import "sync/atomic"

// stripe is one part of a Limiter's free tokens and of what it counts, alone on its
// lines.
type stripe struct {
	free    atomic.Int64 // tokens that an Acquire may take; never below 0
	refused atomic.Int64
	beyond  atomic.Int64           // requests in flight without a token; only the sum counts
	counts  [verdicts]atomic.Int64 // results since the last sweep, by verdict
	passed  atomic.Int64           // ends since the last sweep that say nothing
	_       [lineBytes - 8*(4+verdicts)]byte
}

// tokens holds what may still begin: one token for each request below the limit. It is
// spread over stripes, so that processors meet only when tokens are short: who finds none
// in its own stripe takes one from another.
//
// At rest, the sum of free less debt is the limit less the requests in flight. Only
// adjust, whose callers are serialised, changes that; take and give move one token and
// one request together. No race lets more begin than there are tokens.
type tokens struct {
	stripes []stripe // a power of two of them; set at construction
	// debt is how many tokens are to come in before any is free again: what was in
	// flight beyond the limit when that was cut. Hardly ever written.
	debt atomic.Int64
}

func newTokens() tokens { return tokens{stripes: make([]stripe, stripeCount())} }

// own returns the stripe of the calling goroutine.
func (t *tokens) own() *stripe { return &t.stripes[int(stripeHint())&(len(t.stripes)-1)] }

// take takes a token and reports whether there was one.
func (t *tokens) take() bool {
	start := int(stripeHint())
	for i := range t.stripes {
		s := &t.stripes[(start+i)&(len(t.stripes)-1)]
		for n := s.free.Load(); n > 0; n = s.free.Load() {
			if s.free.CompareAndSwap(n, n-1) {
				return true
			}
		}
	}
	return false
}

// give brings a token back, against the debt first.
func (t *tokens) give() {
	if !t.repay() {
		t.own().free.Add(1)
	}
}

// repay lowers the debt by one and reports whether there was any.
func (t *tokens) repay() bool {
	for d := t.debt.Load(); d > 0; d = t.debt.Load() {
		if t.debt.CompareAndSwap(d, d-1) {
			return true
		}
	}
	return false
}

// adjust adds n tokens, or takes -n away, those in use included: these are owed.
// Calls are serialised by the Limiter's owner.
func (t *tokens) adjust(n int64) {
	for i := range t.stripes {
		s := &t.stripes[i]
		for f := s.free.Load(); f > 0 && n < 0; f = s.free.Load() {
			if by := min(f, -n); s.free.CompareAndSwap(f, f-by) {
				n += by
			}
		}
	}
	if n < 0 {
		t.debt.Add(-n)
		return
	}
	for d := t.debt.Load(); d > 0 && n > 0; d = t.debt.Load() {
		if by := min(d, n); t.debt.CompareAndSwap(d, d-by) {
			n -= by
		}
	}
	for i := range t.stripes {
		// Even shares, the remainder to the first ones.
		if share := (n + int64(len(t.stripes)-1-i)) / int64(len(t.stripes)); share > 0 {
			t.stripes[i].free.Add(share)
		}
	}
}

// settle clears what a give leaves that meets a cut: a free token beside a debt.
func (t *tokens) settle() {
	for t.debt.Load() > 0 && t.take() {
		if !t.repay() {
			t.own().free.Add(1)
			return
		}
	}
}

// left returns the free tokens less the debt.
func (t *tokens) left() (n int64) {
	for i := range t.stripes {
		n += t.stripes[i].free.Load()
	}
	return n - t.debt.Load()
}

// empty takes all tokens away and forgives the debt.
func (t *tokens) empty() {
	for i := range t.stripes {
		t.stripes[i].free.Store(0)
	}
	t.debt.Store(0)
}
