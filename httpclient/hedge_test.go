package httpclient

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
)

// hedgeVector is one of the published vectors of area "hedge".
type hedgeVector struct {
	ID, Area string
	Config   struct {
		Attempts int   `json:"max_attempts"`
		Delay    int64 `json:"delay_ms"`
	}
	Events []struct {
		At       int64 `json:"t_ms"`
		Attempt  int
		Result   string
		Pushback int64 `json:"pushback_ms"`
	}
	Sent []int64 `json:"attempts_sent_at_ms"`
}

func TestVectorsOfHedging(t *testing.T) {
	text, err := os.ReadFile("../outlier/testdata/reliability.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []json.RawMessage }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, raw := range file.Vectors {
		var kind struct{ Area string }
		var v hedgeVector
		if json.Unmarshal(raw, &kind) != nil || kind.Area != "hedge" {
			continue
		}
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		ran++
		playHedge(t, v)
	}
	if ran != 3 {
		t.Errorf("%d vectors were run, want 3", ran)
	}
}

// playHedge plays a vector. "Not to be tried again" is in HTTP a Retry-After that nobody waits for.
func playHedge(t *testing.T, v hedgeVector) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var sent []int64
		a := act(t, 5, &Transport{
			Hedge: &HedgeConfig{Attempts: v.Config.Attempts, Delay: time.Duration(v.Config.Delay) * time.Millisecond},
			Retry: &RetryConfig{Attempts: v.Config.Attempts, Statuses: []int{503}},
		}, nil)
		a.newLeaf = func(Target, string) leaf {
			return leafFunc(func(req *http.Request) (*http.Response, error) {
				a.mu.Lock()
				sent = append(sent, time.Since(start).Milliseconds())
				nth := len(sent)
				a.mu.Unlock()
				for _, e := range v.Events {
					if e.Attempt != nth {
						continue
					}
					if e.Result != "nonfatal" {
						t.Errorf("%s: result %q is not known here", v.ID, e.Result)
					}
					time.Sleep(time.Until(start.Add(time.Duration(e.At) * time.Millisecond)))
					resp := answer(req, 503, "busy")
					if e.Pushback < 0 {
						resp.Header.Set("Retry-After", "999999")
					}
					return resp, nil
				}
				<-req.Context().Done()
				return nil, context.Cause(req.Context())
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		status, err := a.get(request(t, "GET", svc, nil).WithContext(ctx))
		took := time.Since(start)
		synctest.Wait()
		if !slices.Equal(sent, v.Sent) {
			t.Errorf("%s: sent at %v ms, want %v", v.ID, sent, v.Sent)
		}
		if n := len(v.Events); n > 0 && (status != 503 || took.Milliseconds() != v.Events[n-1].At) {
			t.Errorf("%s: %d, %v after %v, want the last answer at %d ms", v.ID, status, err, took, v.Events[n-1].At)
		}
		if n := inFlight(a.Transport); n != 0 {
			t.Errorf("%s: %d in flight", v.ID, n)
		}
		a.Close()
	})
}

// Bug 53: of a thousand hedged requests the losers are neither successes nor failures, and nothing stays in flight.
func TestBug53LosersOfHedgesTeachNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &heard{}
		a := act(t, 3, &Transport{
			Hedge:    &HedgeConfig{Delay: 10 * time.Millisecond},
			Retry:    &RetryConfig{Budget: RetryBudget{Percent: 100, AtOnce: 1000}},
			Observer: told,
			Config:   evenkeel.Config{},
		}, func(_ int, addr string, req *http.Request) (*http.Response, error) {
			d := time.Millisecond
			if addr == "10.0.0.1:80" {
				d = time.Second
			}
			select {
			case <-time.NewTimer(d).C:
				return answer(req, 200, "served"), nil
			case <-req.Context().Done():
				return nil, context.Cause(req.Context())
			}
		})
		a.Config.Policy = nil // the default, which learns
		for range 1000 {
			start := time.Now()
			if status, err := a.get(request(t, "GET", svc, nil)); status != 200 || time.Since(start) > 20*time.Millisecond {
				t.Fatalf("%d, %v after %v", status, err, time.Since(start))
			}
		}
		synctest.Wait()
		s := one(t, a.Transport)
		for _, e := range s.Endpoints {
			if e.Success != 1 || e.InFlight != 0 {
				t.Errorf("%s: success %v, in flight %d", e.ID, e.Success, e.InFlight)
			}
		}
		if slow := endpointStats(t, s, "10.0.0.1:80"); slow.Latency < 9*time.Millisecond {
			t.Errorf("the slow endpoint's latency is %v: its losses are a lower bound", slow.Latency)
		}
		if s.Hedges == 0 || s.HedgesWon != s.Hedges {
			t.Errorf("%d hedges, %d won", s.Hedges, s.HedgesWon)
		}
		lost := uint64(0)
		for _, e := range told.events {
			switch {
			case e.Kind != AttemptDone || e.Outcome == evenkeel.Success:
			case e.Outcome == evenkeel.Canceled:
				lost++
			default:
				t.Fatalf("%+v", e)
			}
		}
		if lost != s.Hedges {
			t.Errorf("%d of %d hedged requests lost a try", lost, s.Hedges)
		}
		a.Close()
	})
}

func TestFirstGoodAnswerWinsAndFailureWaitsForTheOther(t *testing.T) {
	for _, c := range []struct {
		name         string
		first        int // status; 0: an error
		second       int
		at, and      time.Duration
		want         int
		took         time.Duration
		withoutRetry bool
	}{
		{"failure, then good", 500, 200, 20 * time.Millisecond, 30 * time.Millisecond, 200, 40 * time.Millisecond, true},
		{"second fails, first good", 200, 500, 30 * time.Millisecond, time.Millisecond, 200, 30 * time.Millisecond, true},
		{"both fail", 500, 502, 30 * time.Millisecond, time.Millisecond, 500, 30 * time.Millisecond, true},
		{"second is faster", 200, 200, time.Second, time.Millisecond, 200, 11 * time.Millisecond, false},
		{"first fails before the delay", 0, 200, time.Millisecond, time.Millisecond, 200, 2 * time.Millisecond, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := act(t, 2, &Transport{Hedge: &HedgeConfig{Delay: 10 * time.Millisecond}, Retry: &RetryConfig{Disabled: c.withoutRetry}},
				func(nth int, _ string, req *http.Request) (*http.Response, error) {
					status, d := c.first, c.at
					if nth == 2 {
						status, d = c.second, c.and
					}
					select {
					case <-time.NewTimer(d).C:
					case <-req.Context().Done():
						return nil, context.Cause(req.Context())
					}
					if status == 0 {
						return nil, errRefused
					}
					return answer(req, status, "x"), nil
				})
			start := time.Now()
			status, err := a.get(request(t, "GET", svc, nil))
			if took := time.Since(start); status != c.want || took != c.took || a.tries() != 2 {
				t.Errorf("%s: %d, %v after %v, want %d after %v", c.name, status, err, took, c.want, c.took)
			}
			a.Close()
		})
	}
}

func TestOnlyLightIdempotentRequestsAreHedged(t *testing.T) {
	big := strings.Repeat("x", defaultMaxBody+1)
	for _, c := range []struct {
		name string
		req  func(*testing.T) *http.Request
		want int
	}{
		{"GET", func(t *testing.T) *http.Request { return request(t, "GET", svc, nil) }, 2},
		{"PUT", func(t *testing.T) *http.Request { return request(t, "PUT", svc, strings.NewReader("x")) }, 2},
		{"POST", func(t *testing.T) *http.Request { return request(t, "POST", svc, strings.NewReader("x")) }, 1},
		{"big PUT", func(t *testing.T) *http.Request { return request(t, "PUT", svc, strings.NewReader(big)) }, 1},
		{"PUT of a stream", func(t *testing.T) *http.Request {
			return request(t, "PUT", svc, io.MultiReader(strings.NewReader("x")))
		}, 1},
		{"event stream", func(t *testing.T) *http.Request {
			r := request(t, "GET", svc, nil)
			r.Header.Set("Accept", "text/event-stream")
			return r
		}, 1},
		{"upgrade", func(t *testing.T) *http.Request {
			r := request(t, "GET", svc, nil)
			r.Header.Set("Upgrade", "x")
			return r
		}, 1},
		{"trailers", func(t *testing.T) *http.Request {
			r := request(t, "PUT", svc, strings.NewReader("x"))
			r.Trailer = http.Header{"X-Sum": nil}
			return r
		}, 1},
		{"CONNECT", func(t *testing.T) *http.Request {
			r := request(t, "CONNECT", svc, nil)
			return r.WithContext(WithIdempotent(r.Context(), true))
		}, 1},
		{"pinned", func(t *testing.T) *http.Request {
			r := request(t, "GET", svc, nil)
			return r.WithContext(WithEndpoint(r.Context(), "10.0.0.1"))
		}, 1},
		{"sent once", func(t *testing.T) *http.Request {
			r := request(t, "GET", svc, nil)
			return r.WithContext(WithoutRetry(r.Context()))
		}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := act(t, 3, &Transport{Hedge: &HedgeConfig{Delay: time.Millisecond}}, slowly(time.Second))
			if _, err := a.get(c.req(t)); err != nil {
				t.Error(err)
			}
			if n := a.tries(); n != c.want {
				t.Errorf("%s: %d tries, want %d", c.name, n, c.want)
			}
			a.Close()
		})
	}
}

// slowly answers after d.
func slowly(d time.Duration) func(int, string, *http.Request) (*http.Response, error) {
	return func(_ int, _ string, req *http.Request) (*http.Response, error) {
		select {
		case <-time.NewTimer(d).C:
			return answer(req, 200, "x"), nil
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		}
	}
}

func TestHedgesWaitForTheTargetsOwnQuantile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := false
		a := act(t, 3, &Transport{Hedge: &HedgeConfig{}}, func(_ int, _ string, req *http.Request) (*http.Response, error) {
			d := 20 * time.Millisecond
			if slow {
				d = time.Second
			}
			return slowly(d)(0, "", req)
		})
		for i := range 2 * paceEnough { // nothing is known before the first sweep
			if _, err := a.get(request(t, "GET", svc, nil)); err != nil || a.tries() != 1 {
				t.Fatalf("request %d was hedged, or %v", i, err)
			}
		}
		time.Sleep(2 * time.Second)
		slow = true
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
		defer cancel()
		_, err := a.get(request(t, "GET", svc, nil).WithContext(ctx))
		if n := a.tries(); n != 1 || err == nil {
			t.Errorf("%d tries within 15 ms", n)
		}
		ctx, cancel2 := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel2()
		_, err = a.get(request(t, "GET", svc, nil).WithContext(ctx))
		if n := a.tries(); n != 2 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d tries within 300 ms, %v", n, err)
		}
		a.Close()
	})
}

// Hedging stops by itself where it makes things worse.
func TestHedgingStopsForHeavyAnswersAndInDistress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := act(t, 3, &Transport{Hedge: &HedgeConfig{Delay: time.Millisecond}}, func(_ int, _ string, req *http.Request) (*http.Response, error) {
			resp := answer(req, 200, "x")
			resp.ContentLength = -1
			time.Sleep(5 * time.Millisecond)
			return resp, nil
		})
		for range 2 * paceEnough {
			_, _ = a.get(request(t, "GET", svc, nil))
		}
		time.Sleep(2 * time.Second)
		a.tries()
		if _, err := a.get(request(t, "GET", svc, nil)); err != nil || a.tries() != 1 {
			t.Errorf("hedged while answers are heavy; %v", err)
		}
		g := onlyGroup(a.Transport)
		g.pace.onHeavy.Store(false)
		g.distress.Store(true)
		if _, err := a.get(request(t, "GET", svc, nil)); err != nil || a.tries() != 1 {
			t.Errorf("hedged while requests are limited; %v", err)
		}
		a.Close()
	})
}

// The winner's body is whole, though its rivals were cancelled, and so are headers that the caller changes after it.
func TestWinnersBodyIsNotCut(t *testing.T) {
	const size = 512 << 10
	s := serve(t, 3, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X") != "1" {
			t.Errorf("header X is %q", r.Header.Get("X"))
		}
		w.Header().Set("Content-Length", "524288")
		w.(http.Flusher).Flush()
		for range size / 1024 {
			if _, err := w.Write(make([]byte, 1024)); err != nil {
				return // a loser's
			}
		}
	}, plain)
	tr := &Transport{Resolver: static(s), Hedge: &HedgeConfig{Delay: time.Microsecond, MaxBody: 1 << 20}, Retry: &RetryConfig{TryTimeout: time.Minute, Budget: RetryBudget{Disabled: true}}}
	c := client(t, tr)
	for range 100 {
		req := request(t, "GET", svc, nil)
		req.Header.Set("X", "1")
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X", "2") // a loser may be reading its own
		n, err := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if n != size || err != nil {
			t.Fatalf("%d of %d bytes, %v", n, size, err)
		}
	}
	if one(t, tr).Hedges == 0 {
		t.Error("nothing was hedged")
	}
	eventually(t, "nothing is in flight", func() bool { return inFlight(tr) == 0 })
}

// With nobody left to hedge to, a failed request is retried as any other.
func TestHedgedRequestsAreRetriedWhereThereIsOneEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := act(t, 1, &Transport{Hedge: &HedgeConfig{Delay: time.Second}}, func(nth int, _ string, req *http.Request) (*http.Response, error) {
			if nth < 3 {
				return nil, errRefused
			}
			return answer(req, 200, "x"), nil
		})
		req := request(t, "PUT", svc, strings.NewReader("body"))
		resp, err := a.RoundTrip(req)
		if err != nil || resp.Request != req || strings.Join(a.read, ",") != "body,body,body" {
			t.Errorf("%v with %q", err, a.read)
		}
		resp.Body.Close()
		a.Close()
	})
}
