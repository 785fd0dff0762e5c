package health

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestToldEndpointsAreNotPolled(t *testing.T) {
	k := newChecks(t, Config{})
	k.Update([]string{"a"}, 0)
	c, _ := k.Due(0)
	if change, changed := k.Tell("a", true, "SERVING"); !changed || change.To != Healthy {
		t.Errorf("change %+v", change)
	}
	if _, changed := k.Done(c, Failed, "", sec); changed || k.Next() != math.MaxInt64 {
		t.Error("it is polled although it tells")
	}
	if change, changed := k.Tell("a", false, "NOT_SERVING"); !changed || change.Detail != "NOT_SERVING" {
		t.Errorf("change %+v: no thresholds apply to what it says itself", change)
	}
	if _, changed := k.Tell("a", false, "NOT_SERVING"); changed {
		t.Error("the same again is a change")
	}
	if _, changed := k.Tell("nobody", true, ""); changed || len(k.endpoints) != 1 {
		t.Error("nobody was told something")
	}
	if err := k.SetConfig(Config{Interval: time.Second}, 2*sec); err != nil {
		t.Fatal(err)
	}
	k.Used(9 * sec)
	k.Update([]string{"a"}, 9*sec)
	if k.Next() != math.MaxInt64 || status(t, k, "a") != Unhealthy {
		t.Errorf("next at %d, %v: it is polled again while it is a member", k.Next(), status(t, k, "a"))
	}
	k.Update(nil, 10*sec)
	k.Update([]string{"a"}, 11*sec)
	if k.Next() != 11*sec || status(t, k, "a") != Unchecked {
		t.Errorf("next at %d, %v: it left, and what it told with it", k.Next(), status(t, k, "a"))
	}
	if k.Tell("a", true, "SERVING"); k.Next() != math.MaxInt64 {
		t.Errorf("next at %d although it told before its check was due", k.Next())
	}
}

// naiveEndpoint is what Checks should know, kept as a history.
type naiveEndpoint struct {
	history []Result
	due     int64 // math.MaxInt64 while a check is being made
	pending []Check
}

// FuzzChecks plays updates, checks, late results and pauses against histories.
func FuzzChecks(f *testing.F) {
	f.Add([]byte{0, 15, 1, 0, 2, 0, 1, 0, 2, 1, 0, 14, 3, 255, 1, 0, 2, 2})
	f.Add([]byte{0, 1, 1, 0, 0, 0, 0, 1, 2, 0, 1, 0, 2, 0, 3, 200, 1, 0, 2, 1, 4, 0})
	f.Fuzz(func(t *testing.T, ops []byte) { playChecks(t, ops) })
}

func TestChecksAgainstHistories(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 6))
		ops := make([]byte, 600)
		for i := range ops {
			ops[i] = byte(r.IntN(256))
		}
		playChecks(t, ops)
	}
}

func playChecks(t *testing.T, ops []byte) {
	t.Helper()
	k := newChecks(t, Config{Interval: 10 * time.Second, Jitter: None, UnexpectedAtOnce: true})
	naive := map[string]*naiveEndpoint{}
	var late []Check // of endpoints that have left
	now := int64(0)
	for i := 0; i+1 < min(len(ops), 1000); i += 2 {
		arg := ops[i+1]
		switch ops[i] % 5 {
		case 0:
			playUpdate(k, naive, &late, arg, now)
		case 1, 4:
			c, ok := k.Due(now)
			want := int64(math.MaxInt64)
			for _, e := range naive {
				want = min(want, e.due)
			}
			if ok != (want <= now) || ok && naive[c.ID].due != want {
				t.Fatalf("op %d at %d: due %+v, %v; want what was due at %d", i, now, c, ok, want)
			}
			if ok {
				naive[c.ID].due = math.MaxInt64
				naive[c.ID].pending = append(naive[c.ID].pending, c)
			}
		case 2:
			playResult(t, k, naive, late, arg, now)
		case 3:
			now += int64(arg) * 250 * ms
		}
		next := int64(math.MaxInt64)
		for id, e := range naive {
			next = min(next, e.due)
			if want := statusFrom(e.history, 2, 3, true); status(t, k, id) != want {
				t.Fatalf("op %d at %d: %s is %v, want %v after %v", i, now, id, status(t, k, id), want, e.history)
			}
		}
		if len(k.endpoints) != len(naive) || k.Next() != next {
			t.Fatalf("op %d at %d: %d endpoints, next at %d; want %d, %d", i, now, len(k.endpoints), k.Next(), len(naive), next)
		}
	}
}

// playUpdate makes those of four endpoints members whose bit is set.
func playUpdate(k *Checks, naive map[string]*naiveEndpoint, late *[]Check, set byte, now int64) {
	var ids []string
	for j := range 4 {
		id := fmt.Sprint("e", j)
		e := naive[id]
		switch {
		case set>>j&1 == 1:
			ids = append(ids, id)
			if e == nil {
				naive[id] = &naiveEndpoint{due: now}
			}
		case e != nil:
			*late = append(*late, e.pending...)
			delete(naive, id)
		}
	}
	k.Update(ids, now)
}

// playResult brings one result, or a late one that must change nothing.
func playResult(t *testing.T, k *Checks, naive map[string]*naiveEndpoint, late []Check, arg byte, now int64) {
	t.Helper()
	r := Result(arg % 3)
	if arg >= 128 && len(late) > 0 {
		if _, changed := k.Done(late[int(arg)%len(late)], r, "", now); changed {
			t.Fatal("a late result changed something")
		}
		return
	}
	e := naive[fmt.Sprint("e", arg/3%4)]
	if e == nil || len(e.pending) == 0 {
		return
	}
	c := e.pending[0]
	e.pending = nil
	before := statusFrom(e.history, 2, 3, true)
	e.history = append(e.history, r)
	after := statusFrom(e.history, 2, 3, true)
	e.due = max(c.Started+60*sec, now) // nobody uses this pool
	if change, changed := k.Done(c, r, "", now); changed != (before != after) || changed && (change.From != before || change.To != after) {
		t.Fatalf("change %+v, %v; want from %v to %v", change, changed, before, after)
	}
}
