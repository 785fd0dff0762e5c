package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// Seen shows what knowledge of some age is worth. It knows how fast every server is, and how
// many requests each had at hand some time before: for each server and each request anew, an
// exponential time with the mean Age. It expects a queue to return to the usual one and takes the shortest
// expected delay. No client knows as much from answers: each tells of one server, and is as old
// as the client's last request to it.
type Seen struct {
	// Age is the mean age of what is known, 1 ms to a minute.
	Age time.Duration
	// Usual is the usual number of requests at hand, and Forget how fast a queue gets back to
	// it, as a time constant.
	Usual  float64
	Forget time.Duration
}

// seenFor is how far back the past is kept, in mean ages.
const seenFor = 8

// Choose implements Chooser.
func (s Seen) Choose(v *View) int {
	best, least := -1, math.Inf(1)
	first := below(&v.run.picks, v.Len())
	for k := range v.Len() {
		i := (first + k) % v.Len()
		if !v.Available(i) {
			continue
		}
		age := exponentialAge(&v.run.picks, s.Age)
		queue := s.Usual
		if load, ok := v.run.past.load(i, v.run.now-age); ok {
			queue += (float64(load) - s.Usual) * math.Exp(-float64(age)/float64(s.Forget))
		}
		if delay := (queue + 1) * v.MeanService(i); delay < least {
			best, least = i, delay
		}
	}
	return best
}

// exponentialAge returns an exponential time with the given mean, at most as long as the past is
// kept.
func exponentialAge(g *rand.PCG, mean time.Duration) int64 {
	return int64(min(-math.Log(uniform(g)), seenFor) * float64(mean))
}

// past is the number of requests at hand of every server, millisecond by millisecond.
type past struct {
	rows  [][]int32 // a ring by millisecond
	until int64     // the last millisecond that is kept
}

const pastStep = int64(time.Millisecond)

func newPast(servers int, s Seen) *past {
	p := &past{rows: make([][]int32, int64(seenFor*s.Age)/pastStep+2), until: -1}
	for i := range p.rows {
		p.rows[i] = make([]int32, servers)
	}
	return p
}

// note keeps the present. Between two requests it is as at the later one, before that comes.
func (p *past) note(r *run) {
	for now := r.now / pastStep; p.until < now; {
		p.until = max(p.until+1, now-int64(len(p.rows)))
		row := p.rows[p.until%int64(len(p.rows))]
		for i := range row {
			row[i] = int32(r.servers[i].load)
		}
	}
}

// load returns how many requests server i had at hand at an instant; ok is false if that is not
// known.
func (p *past) load(i int, at int64) (n int32, ok bool) {
	k := at / pastStep
	if at < 0 || k > p.until || k <= p.until-int64(len(p.rows)) {
		return 0, false
	}
	return p.rows[k%int64(len(p.rows))][i], true
}
