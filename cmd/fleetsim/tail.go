package main

import "slices"

// tail returns about how many seconds after the last request the last answer may come: a
// run goes on until then, and clients do their housekeeping all the time.
func (s *settings) tail() float64 {
	if s.timeout > 0 {
		return s.timeout.Seconds()
	}
	n := s.requests()
	u := max(0.5, 1-1/(n+1))
	longest, mean := s.service.At(u), s.service.Mean()
	if s.streams > 0 {
		longest = max(longest, s.streamTime.At(u))
		mean += s.streams * (s.streamTime.Mean() - mean)
	}
	longest *= slices.Max(s.factors(func(_ incident, from, to float64) float64 { return max(1, from, to) }))
	for _, c := range s.incidents {
		if c.kind == "fail" {
			longest = max(longest, float64(c.after))
		}
	}
	return 2*s.delay.Seconds() + (min(1, n)*longest+s.waiting(n, mean))/1e9
}

// waiting returns about how long the last of n requests may have to wait, with a policy that
// does not look, in nanoseconds. Of incidents, those count that outlast the requests.
func (s *settings) waiting(n, mean float64) float64 {
	if s.concurrency == 0 {
		return 0
	}
	slowest := slices.Max(s.factors(func(c incident, from, to float64) float64 {
		if c.until <= s.duration {
			return 1
		}
		return max(1, from, to)
	}))
	each := mean * slowest / float64(s.concurrency)
	if users := s.arrivals.Users; users > 0 {
		return float64(users) * each
	}
	return max(0, n/float64(s.endpoints)*each-float64(s.duration))
}
