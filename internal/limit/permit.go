package limit

// Permit is what one request holds of a pool's limit and of an endpoint's cap. It is a
// small value: keep it in one variable and call Release on that. The zero Permit
// holds nothing. The methods of one Permit must not be called concurrently.
type Permit struct {
	limiter *Limiter
	cap     *Cap
	beyond  bool
}

// PermitOf returns the Permit of a request for which those of l and c that are not nil
// have been acquired.
func PermitOf(l *Limiter, c *Cap) Permit { return Permit{limiter: l, cap: c} }

// PermitBeyond is PermitOf after [Limiter.AcquireBeyond].
func PermitBeyond(l *Limiter, c *Cap) Permit { return Permit{limiter: l, cap: c, beyond: true} }

// Release gives back what the Permit holds. A second call does nothing.
func (p *Permit) Release() {
	switch {
	case p.limiter == nil:
	case p.beyond:
		p.limiter.ReleaseBeyond()
	default:
		p.limiter.Release()
	}
	if p.cap != nil {
		p.cap.Release()
	}
	*p = Permit{}
}
