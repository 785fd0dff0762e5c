package main

// Bytes that runs take, as measured, and what all of them may take together.
const (
	perRecord  = 750       // of a client's for an endpoint
	perRequest = 370       // that is under way
	perResult  = 100 << 10 // without its steps
	roomOfRuns = 2 << 30
)

// workers returns how many of at most most runs there is room for at a time, one at least.
// Where load stays below capacity few requests are under way at once, but then there are
// few in all, or it does no harm.
func (p *plan) workers(most int) int {
	each := float64(p.clients)*float64(p.endpoints)*perRecord + p.requests()*perRequest
	return max(1, int(min(float64(most), roomOfRuns/each)))
}

// batch returns how many results may wait to be folded, for a number of workers.
func (p *plan) batch(workers int) int {
	steps := float64(p.duration)/float64(p.scenario.Bucket) + 1
	each := perResult + steps*(10<<10+16*float64(p.endpoints))
	return max(workers, int(min(float64(16*workers), roomOfRuns/4/each)))
}
