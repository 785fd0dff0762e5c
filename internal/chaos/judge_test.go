//go:build unix

package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// bars are what every contender has to reach.
type bars struct {
	// lost is the largest number of requests, of those under way during the trouble, that fail for
	// each bad server. What a client cannot help losing is what a server had in flight and what it
	// takes to find out; a blind one loses all that goes there.
	lost int
	// success, if set, is the least part that succeeds, in place of lost.
	success float64
	// ofPossible, if set, is the same as a part of what the servers can do.
	ofPossible float64
	// worst is the largest share of the requests that a bad server may have from a second on. 0
	// means any.
	worst float64
	// recovered is how long after the trouble success may take to be 99 % again.
	recovered time.Duration
	// returned is how long after the trouble a bad server may take to have half the share of the good
	// one with the smallest. 0 means any.
	returned time.Duration
	// blind says that the reference has to lose at least half of what goes to bad servers, which
	// shows that there is trouble.
	blind bool
	// faster, if set, is the largest mean duration of what succeeds, as a part of the reference's.
	faster float64
}

// barsOf are the bars of one kind of contender.
type barsOf struct {
	http bars // over HTTP/2, too
	grpc bars
}

func (b barsOf) of(c *client) bars {
	if c.adapter == "grpc" {
		return b.grpc
	}
	return b.http
}

// bars are those that a client has to reach.
func (r *run) bars(c *client) bars {
	if c.guarded {
		return r.guarded.of(c)
	}
	return r.learning.of(c)
}

// figures are what one client saw of a trouble.
type figures struct {
	*client
	during    samples
	after     samples
	breaks    samples // of streams: from the last piece to the next one's first, at the old address
	success   float64
	worst     float64 // share of a bad server
	least     float64 // share of a good one
	mean      time.Duration
	recovered time.Duration
	asked     time.Duration // until the first good answer of each bad server
	returned  time.Duration
	back      bool // within the time that was watched
}

// measure makes figures of what a client saw until an instant. Requests that were under way while
// the machine stood still are left out, but of the reference: they are the longest first, so that there would
// seem to be no trouble with servers that hang.
func (r *run) measure(c *client, l *load, until time.Duration) figures {
	s := l.seen().since(r.canary.began.Sub(l.began))
	if c.name != reference.name {
		s = s.without(r.canary.seen().stuck())
	}
	s = s.inOrder()
	f := figures{client: c, back: true, least: 1}
	f.during = s.between(r.begin, r.end)
	counted := f.during
	if r.learn > 0 {
		counted = s.started(r.begin+r.learn, r.end)
	}
	f.success = part(counted.well(), counted)
	f.mean = f.during.well().mean()
	settled := s.started(r.begin+min(time.Second, r.setting.length/2), r.end)
	var good []string
	for _, srv := range r.fleet[r.bad:] {
		addr := c.addr(srv)
		good = append(good, addr)
		f.least = min(f.least, part(settled.to(addr), settled))
	}
	for _, srv := range r.fleet[:r.bad] {
		addr := c.addr(srv)
		f.worst = max(f.worst, part(settled.to(addr), settled))
		f.asked = max(f.asked, s.started(r.end, until).to(addr).well().first(until)-r.end)
		after, ok := s.returned(addr, good, r.end, until)
		f.returned, f.back = max(f.returned, after), f.back && ok
	}
	if after, ok := r.returned[c]; ok {
		f.returned, f.back = after, true
	}
	f.recovered = s.recovered(r.end, until)
	f.after = s.started(r.end, until)
	if k := r.keepers[c]; k != nil {
		f.breaks = k.seen(r.canary.began)
	}
	return f
}

// cutWithin is how long those who are cut off may seem to be so before the order to do it is carried out.
const cutWithin = 100 * time.Millisecond

// judge holds the figures against the bars, and says where they do not reach them.
func (r *run) judge(all []figures) (texts []string) {
	references := map[string]figures{} // by adapter
	lost := 0
	for _, f := range all {
		if f.name == reference.name {
			references[f.adapter] = f
			most := 1 - 0.5*float64(r.bad)/float64(r.size)
			if r.learning.of(f.client).blind && f.success > most {
				texts = append(texts, fmt.Sprintf("%s over %s: %.2f %% succeeded, want at most %.2f: there was no trouble",
					f.name, f.adapter, 100*f.success, 100*most))
			}
		}
		lost += len(f.during.that(func(x sample) bool { return x.failure != "" && x.start < r.struck && x.end >= r.struck-cutWithin }))
	}
	if r.cut && lost == 0 {
		texts = append(texts, "no request was lost that was under way at first: nobody was hit in mid request")
	}
	references["http2"] = references["http"]
	for _, f := range all {
		if f.name == reference.name {
			continue
		}
		for _, problem := range r.problems(f, references[f.adapter]) {
			texts = append(texts, fmt.Sprintf("%s over %s: %s", f.name, f.adapter, problem))
		}
	}
	return texts
}

// problems says where the figures of a contender do not reach the bars. The reference, if there is
// one, does as well as the servers from the moment that the trouble is over: what it loses later is not
// the balancing's.
func (r *run) problems(f, reference figures) (texts []string) {
	b := r.bars(f.client)
	add := func(format string, args ...any) { texts = append(texts, fmt.Sprintf(format, args...)) }
	lost := len(f.during) - len(f.during.well())
	least := max(b.success, b.ofPossible*r.possible[f.adapter])
	if least == 0 && lost > b.lost*max(r.bad, 1) {
		add("%d of %d requests failed during the trouble, want at most %d: %s", lost, len(f.during), b.lost*max(r.bad, 1), failures(f.during))
	}
	if f.success < least {
		add("%.2f %% succeeded during the trouble, want %.2f: %s", 100*f.success, 100*least, failures(f.during))
	}
	if n := failed(f.during)[late]; r.cut && n > 0 {
		add("%d requests waited for their deadline, want those that are cut off to know at once", n)
	}
	if b.worst != 0 && f.worst > b.worst {
		add("a bad server had %.1f %% of the requests, want at most %.1f", 100*f.worst, 100*b.worst)
	}
	if latest := reference.recovered + b.recovered; f.recovered > latest {
		add("success was 99 %% again after %v, want %v: %s", f.recovered, latest, failures(f.after))
	}
	if b.returned != 0 && (!f.back || f.returned > b.returned) {
		add("a bad server had its share again after %v (%t), want %v", f.returned, f.back, b.returned)
	}
	if b.faster != 0 && float64(f.mean) > b.faster*float64(reference.mean) {
		add("%v on average, want %.2f of the reference's %v", f.mean, b.faster, reference.mean)
	}
	return append(texts, r.broken(f)...)
}

// broken says what is wrong with the streams.
func (r *run) broken(f figures) (texts []string) {
	bad := map[string]bool{}
	for _, s := range r.fleet[:r.bad] {
		bad[f.addr(s)] = true
	}
	for _, b := range f.breaks {
		if !bad[b.addr] {
			texts = append(texts, fmt.Sprintf("a stream to %q broke, to which nothing happened: %s", b.addr, b.failure))
		}
		if gap := b.end - b.start; gap > r.gap {
			texts = append(texts, fmt.Sprintf("a stream that broke went on after %v, want %v", gap, r.gap))
		}
	}
	return texts
}

// failed counts failures by what they were.
func failed(s samples) map[string]int {
	n := map[string]int{}
	for _, x := range s {
		if x.failure != "" {
			n[x.failure]++
		}
	}
	return n
}

// failures says what failed, and how often.
func failures(s samples) string {
	n := failed(s)
	var texts []string
	for _, what := range slices.Sorted(maps.Keys(n)) {
		texts = append(texts, fmt.Sprintf("%d %s", n[what], what))
	}
	return strings.Join(texts, ", ")
}

// head is the head of a table of figures.
var head = fmt.Sprintf("%-26s %-5s %-20s %9s %7s %7s %8s %6s %6s %8s  %s", "trouble", "", "",
	"success", "bad", "good", "mean", "99 %", "asked", "share", "failures")

// row is a line of that table.
func (f figures) row(name string, possible float64) string {
	what := failures(f.during)
	if possible > 0 {
		what = fmt.Sprintf("%.1f %% possible; %s", 100*possible, what)
	}
	if n := len(f.breaks); n > 0 {
		var longest time.Duration
		for _, b := range f.breaks {
			longest = max(longest, b.end-b.start)
		}
		what = fmt.Sprintf("%d streams broke, for %s at most; %s", n, seconds(longest), what)
	}
	back := seconds(f.returned)
	if !f.back {
		back = "> " + back
	}
	return fmt.Sprintf("%-26s %-5s %-20s %7.2f %% %5.1f %% %5.1f %% %8v %6s %6s %8s  %s", name, f.adapter, f.name,
		100*f.success, 100*f.worst, 100*f.least, f.mean.Round(100*time.Microsecond),
		seconds(f.recovered), seconds(f.asked), back, what)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
