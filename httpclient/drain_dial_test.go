package httpclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
)

// A dial that is refused because the endpoint was cut off has sent nothing: the request goes elsewhere, whatever it is, and
// if there is nobody else the error says both.
func TestDialOfADrainedEndpointIsUnreached(t *testing.T) {
	s := serve(t, 2, hello, plain)
	for _, early := range []bool{true, false} { // before the dial, or during it
		for _, alone := range []bool{true, false} {
			var at atomic.Pointer[func()]
			base := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
				if f := at.Load(); f != nil && addr == s[0].addr {
					(*f)()
				}
				return conn, err
			}}
			list := static(s)
			if alone {
				list = list[:1]
			}
			tr := &Transport{Resolver: list, Base: base, Config: evenkeel.Config{Policy: picker.RoundRobin{}, DrainTimeout: time.Minute}}
			c := client(t, tr)
			for range len(list) {
				fetch(t, c, svc)
			}
			c.CloseIdleConnections()
			e := onlyGroup(tr).endpoints[s[0].addr]
			cut := func() {
				e.cut.Store(true)
				for _, conn := range e.cutAll() {
					conn.Close()
				}
			}
			if early {
				cut()
			} else {
				at.Store(&cut)
			}
			for range 4 {
				resp, err := c.Do(request(t, http.MethodPost, svc, io.MultiReader(strings.NewReader("x"))))
				if err == nil {
					resp.Body.Close()
				}
				// A body that is gone cannot be sent again, and says so.
				var failed *AttemptError
				if err != nil && (!errors.Is(err, ErrDrained) || !errors.Is(err, ErrUnreached) || !errors.As(err, &failed) || failed.Sent ||
					failed.Outcome != evenkeel.Unknown || strings.Count(err.Error(), "was drained") != 1) || err == nil && alone {
					t.Errorf("early %v, alone %v: %v", early, alone, err)
				}
				resp, err = c.Do(request(t, http.MethodPost, svc, strings.NewReader("x")))
				if err == nil {
					resp.Body.Close()
				}
				if (err != nil) != alone {
					t.Errorf("early %v, alone %v: %v for one that can be sent again", early, alone, err)
				}
			}
			if st := endpointStats(t, one(t, tr), s[0].addr); st.Success != 1 {
				t.Errorf("early %v, alone %v: it is blamed: %+v", early, alone, st)
			}
		}
	}
}

// builds is round robin that says when a list is about to be in force.
type builds struct {
	picker.RoundRobin
	on func()
}

// Build implements picker.Policy.
func (b *builds) Build(m *picker.Members, prev picker.Picker) picker.Picker {
	if b.on != nil {
		b.on()
	}
	return b.RoundRobin.Build(m, prev)
}

// An endpoint that was cut off with weight 0 and has weight again, or is as good as all others, may be connected to before the
// first request can choose it, and not if the list is refused.
func TestWeightThatIsBackFailsNobody(t *testing.T) {
	zero := evenkeel.WeightOf(0)
	for _, back := range [][]Address{
		{{Addr: "10.0.0.1"}, {Addr: "10.0.0.2"}},
		{{"10.0.0.1", zero}, {"10.0.0.2", zero}},
		{{"10.0.0.1", zero}},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &builds{}
			r := &script{first: addrs("10.0.0.1")}
			tr := &Transport{Resolver: r, Base: piped(nil), Config: evenkeel.Config{Policy: p, DrainTimeout: time.Second}}
			defer tr.Close()
			resp := openBody(t, tr)
			defer resp.Body.Close()
			update := func(list ...Address) error { return r.sink().Update(list) }
			if err := update(Address{"10.0.0.1:80", zero}, Address{Addr: "10.0.0.2"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			e := onlyGroup(tr).endpoints["10.0.0.1:80"]
			l, _ := e.tracked()
			if !e.cut.Load() || !l.conns.refuses() {
				t.Fatal("it was not cut off")
			}
			bad := Address{"10.0.0.3", evenkeel.WeightOf(-1)}
			if err := update(Address{Addr: "10.0.0.1"}, bad); err == nil || !e.cut.Load() || !l.conns.refuses() {
				t.Errorf("a list that is refused changed something: %v", err)
			}
			looked := 0
			p.on = func() {
				if looked++; e.cut.Load() || l.conns.refuses() {
					t.Error("a request may choose it, and it may not be connected to")
				}
			}
			if err := update(back...); err != nil || looked == 0 {
				t.Fatal(err)
			}
			p.on = nil
			if again := openBody(t, tr); again.StatusCode != http.StatusOK {
				t.Error(again.Status)
			} else {
				again.Body.Close()
			}
		})
	}
}

// Weights that are all 0 are all equal: nobody is drained by them, or cut off.
func TestListOfWeightsZeroCutsNobodyOff(t *testing.T) {
	zero := evenkeel.WeightOf(0)
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := &script{first: []Address{{"10.0.0.1", zero}, {"10.0.0.2", zero}}}
		tr := &Transport{Resolver: r, Base: piped(release), Config: evenkeel.Config{Policy: picker.RoundRobin{}, DrainTimeout: time.Second}}
		defer tr.Close()
		first, second := openBody(t, tr), openBody(t, tr)
		if id := second.Body.(*body).pick.Handle().addr; id != "10.0.0.2:80" {
			first, second = second, first
		}
		time.Sleep(10 * time.Second)
		tr.Drain("10.0.0.1") // by word it is
		time.Sleep(10 * time.Second)
		close(release)
		if text, err := io.ReadAll(second.Body); string(text) != "begin end" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
		if _, err := io.ReadAll(first.Body); !errors.Is(err, ErrDrained) {
			t.Errorf("%v of who was drained", err)
		}
	})
}
