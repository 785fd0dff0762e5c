package outlier

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// The queue gives what a sorted list gives, after any pushes and pops.
func TestProbeQueueFollowsASortedList(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 64))
	for range 200 {
		var q probeQueue
		var list []probeEntry
		for k := range 300 {
			if r.IntN(5) < 3 {
				e := probeEntry{r.Int64N(40), &Host{ownerPart: ownerPart{id: fmt.Sprint(k)}}}
				q.push(e)
				list = append(list, e)
				slices.SortFunc(list, func(a, b probeEntry) int {
					return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.host.id, b.host.id))
				})
			} else if len(q) > 0 {
				q.pop()
				list = list[1:]
			}
			if len(q) != len(list) || len(q) > 0 && q[0] != list[0] {
				t.Fatalf("it has %d, the list %d, or another is first", len(q), len(list))
			}
		}
	}
}

// Permits that are taken without the queue, endpoints that fail checks, leave or return: what is next is always what a
// look at everybody finds.
func TestNextProbeIsFoundAmongAll(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 64))
	for range 50 {
		d, err := NewDetector(Config{Soft: SoftConfig{ConsecutiveFailures: 1}}, r.Uint64, 0)
		if err != nil {
			t.Fatal(err)
		}
		list := make([]Member, 12)
		for i := range list {
			list[i].ID = fmt.Sprint(i)
		}
		now, out := int64(0), []Token(nil)
		for range 500 {
			if r.IntN(20) == 0 || d.Len() == 0 {
				r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
				if _, err := d.Update(list[:1+r.IntN(len(list))], now); err != nil {
					t.Fatal(err)
				}
			}
			h := d.Host(r.IntN(d.Len()))
			switch r.IntN(7) {
			case 0:
				d.SetStanding(h.index, Standing(r.IntN(2)), now)
			case 1:
				if token, ok := h.TryProbe(now); ok && h.Observe(Event(r.IntN(5)), token, now) {
					d.Act(h, now)
				}
			case 2:
				if _, token, ok := d.Probe(now, r.IntN(2) == 0); ok {
					out = append(out, token)
				}
			case 3:
				now += r.Int64N(4e9)
			case 4:
				if r.IntN(10) == 0 {
					now = max(now-r.Int64N(4e9), 0)
				}
				d.Sweep(now)
			default:
				if h.Observe(Failed, h.Token(), now) {
					d.Act(h, now)
				}
			}
			d.planProbes()
			want := int64(permitClosed)
			for _, h := range d.hosts {
				if p := h.permit.Load(); p >= 0 && p < permitDeciding && State(h.state.Load()) == Ejected && h.standing == Usable {
					want = min(want, p)
				}
			}
			if got := d.nextProbe.Load(); got != want {
				t.Fatalf("the next is at %d, want %d", got, want)
			}
		}
		if len(out) == 0 {
			t.Error("nothing was probed")
		}
	}
}
