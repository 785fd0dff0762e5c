package outlier

import "math"

// sweepEnvoy does Envoy's interval: first who has served their time, then the rates of
// those that are in, then the multipliers.
func (d *Detector) sweepEnvoy() {
	r := d.rules
	for _, h := range d.hosts {
		if State(h.state.Load()) == Ejected && d.now-h.ejectedAt >= h.sentence {
			d.bringBack(h, TimeServed)
		}
	}
	answers, locals := d.swapIntervals()
	d.hasLimit = false
	d.envoyLook(answers, r.rate.enforce, LowSuccessRate, r.percentage.enforce, HighFailurePercentage)
	if r.split {
		had, limit := d.hasLimit, d.threshold
		d.envoyLook(locals, r.rate.enforceLocal, LowLocalSuccessRate, r.percentage.enforceLocal, HighLocalFailurePercentage)
		d.hasLimit, d.threshold = had, limit // what is shown is that of answers
	}
	for _, h := range d.hosts {
		// Not in the sweep that released it: an interval has to pass first.
		if h.multiplier > 0 && State(h.state.Load()) != Ejected && d.now-h.returnedAt >= r.interval {
			h.multiplier--
		}
	}
}

// envoyLook judges one kind of results. Who takes part is settled before anybody is
// ejected, for both rules: those that are in.
func (d *Detector) envoyLook(list []interval, enforceRate float64, whyRate Reason, enforcePercent float64, whyPercent Reason) {
	rate, percentage := d.rules.rate, d.rules.percentage
	rated, counted := withVolume(list, rate.volume, true), withVolume(list, percentage.volume, true)
	if len(rated) >= rate.hosts {
		d.threshold, d.hasLimit = rateThreshold(rated, rate.factor), true
		for _, v := range rated {
			if v.rate() < d.threshold {
				d.tryEject(v.host, whyRate, enforceRate)
			}
		}
	}
	if len(counted) >= percentage.hosts {
		for _, v := range counted {
			if 100*float64(v.bad) >= percentage.threshold*float64(v.total()) {
				d.tryEject(v.host, whyPercent, enforcePercent)
			}
		}
	}
}

// sweepA50 does gRFC A50's: success rate, failure percentage, then multipliers down and
// those back whose time is over, in one go. Statistics are over all that have the volume,
// those that are out included.
func (d *Detector) sweepA50() {
	answers, _ := d.swapIntervals()
	d.hasLimit = false
	if r := d.rules.rate; r != nil {
		if in := withVolume(answers, r.volume, false); len(in) >= r.hosts {
			d.threshold, d.hasLimit = rateThreshold(in, r.factor), true
			d.a50Eject(in, LowSuccessRate, r.enforce, func(v interval) bool { return v.rate() < d.threshold })
		}
	}
	if r := d.rules.percentage; r != nil {
		if in := withVolume(answers, r.volume, false); len(in) >= r.hosts {
			d.a50Eject(in, HighFailurePercentage, r.enforce, func(v interval) bool {
				return 100*float64(v.bad) > r.threshold*float64(v.total()) // "greater than": Envoy's is "at least"
			})
		}
	}
	for _, h := range d.hosts {
		switch out := State(h.state.Load()) == Ejected; {
		case !out && h.multiplier > 0:
			h.multiplier--
		case out && d.now-h.ejectedAt >= h.sentence:
			d.bringBack(h, TimeServed)
		}
	}
}

func (d *Detector) a50Eject(in []interval, why Reason, enforce float64, outlier func(interval) bool) {
	for _, v := range in {
		if outlier(v) {
			d.tryEject(v.host, why, enforce)
		}
	}
}

// withVolume returns those with enough requests; only those that are in if inOnly.
func withVolume(list []interval, volume int, inOnly bool) []interval {
	enough := make([]interval, 0, len(list))
	for _, v := range list {
		if v.total() >= uint64(volume) && v.host.standing != Drained &&
			(!inOnly || State(v.host.state.Load()) != Ejected) {
			enough = append(enough, v)
		}
	}
	return enough
}

// rateThreshold is mean - factor · stdev of the success rates, in percent, with the
// deviation of the whole population.
func rateThreshold(in []interval, factor float64) float64 {
	n := float64(len(in))
	sum := 0.0
	for _, v := range in {
		sum += v.rate()
	}
	mean, squares := sum/n, 0.0
	for _, v := range in {
		squares += (v.rate() - mean) * (v.rate() - mean)
	}
	return mean - factor*math.Sqrt(squares/n)
}
