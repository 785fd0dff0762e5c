package httpclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
)

// play answers the tries of a request one after the other: with an error, a status, or not at all (a nil error and no status).
type play struct {
	err    error
	status int
}

func (p play) answer(req *http.Request) (*http.Response, error) {
	switch {
	case p.err != nil:
		return nil, p.err
	case p.status != 0:
		return answer(req, p.status, "x"), nil
	}
	connectedNow(req)
	<-req.Context().Done()
	return nil, context.Cause(req.Context())
}

// oneByOne plays each try's part.
func oneByOne(parts ...play) func(int, string, *http.Request) (*http.Response, error) {
	return func(nth int, _ string, req *http.Request) (*http.Response, error) { return parts[nth-1].answer(req) }
}

func TestErrorTellsOfEveryTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &heard{}
		a := act(t, 3, &Transport{Observer: told, Retry: &RetryConfig{Statuses: []int{502}, TryTimeout: time.Second}},
			oneByOne(play{}, play{status: 502}, play{err: errBroken}))
		_, err := a.get(request(t, "GET", svc, nil))
		var failed *AttemptError
		if !errors.As(err, &failed) || len(failed.Earlier) != 2 {
			t.Fatalf("%v, want an AttemptError with two earlier tries", err)
		}
		s := a.sent
		want := "httpclient: http://svc.test:80: endpoint " + s[2] + ", attempt 3: unexpected EOF (before that: endpoint " + s[0] +
			", attempt 1: no answer within RetryConfig.TryTimeout; endpoint " + s[1] + ", attempt 2: status 502)"
		if err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
		first, second := failed.Earlier[0], failed.Earlier[1]
		if first.Endpoint != s[0] || first.Attempt != 1 || first.Elapsed != time.Second || !first.Sent || first.Outcome != evenkeel.Timeout || !errors.Is(first.Err, errTryTimeout) {
			t.Errorf("first: %+v", first)
		}
		if second.Endpoint != s[1] || second.Attempt != 2 || second.Status != 502 || second.Err != nil || second.Outcome != evenkeel.Failure || second.Kind != AttemptDone {
			t.Errorf("second: %+v", second)
		}
		for _, e := range told.events { // what they were told does not change afterwards
			var one *AttemptError
			if errors.As(e.Err, &one) && one.Earlier != nil {
				t.Errorf("the observer was told of attempt %d with the others in it", e.Attempt)
			}
		}
		a.Close()
	})
}

// An error is what its last try is, except that something was sent if it was in any.
func TestErrorIsThatOfTheLastTry(t *testing.T) {
	timeout := play{}
	for _, c := range []struct {
		name      string
		parts     []play
		unreached bool
		timeout   bool
	}{
		{"never sent", []play{{err: errRefused}, {err: errRefused}, {err: errRefused}}, true, false},
		{"sent, then not", []play{{err: errBroken}, {err: errRefused}, {err: errRefused}}, false, false},
		{"answered, then not sent", []play{{status: 502}, {err: errRefused}, {err: errRefused}}, false, false},
		{"not sent, then sent", []play{{err: errRefused}, {err: errRefused}, {err: errBroken}}, false, false},
		{"timeout, then refused", []play{timeout, {err: errRefused}, {err: errRefused}}, false, false},
		{"refused, then timeout", []play{{err: errRefused}, {err: errRefused}, timeout}, false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := act(t, 3, &Transport{Retry: &RetryConfig{Statuses: []int{502}, TryTimeout: time.Second}}, oneByOne(c.parts...))
			_, err := (&http.Client{Transport: a.Transport}).Do(request(t, "GET", svc, nil))
			var ue *url.Error
			var ne net.Error
			if !errors.As(err, &ue) || !errors.As(ue.Err, &ne) || ue.Timeout() != c.timeout || errors.Is(err, ErrUnreached) != c.unreached {
				t.Errorf("%s: %v: unreached %v, timeout %v", c.name, err, errors.Is(err, ErrUnreached), ue.Timeout())
			}
			if n := a.tries(); n != 3 {
				t.Errorf("%s: %d tries", c.name, n)
			}
			var failed *AttemptError
			if errors.As(err, &failed) && c.parts[0] == timeout && failed.Earlier[0].Elapsed != time.Second {
				t.Errorf("%s: the first try took %v", c.name, failed.Earlier[0].Elapsed)
			}
			a.Close()
		})
	}
}

func TestErrorOfAHedgedRequestTellsOfEveryTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := act(t, 3, &Transport{Hedge: &HedgeConfig{Delay: 10 * time.Millisecond}, Retry: &RetryConfig{Attempts: 3}},
			func(nth int, _ string, req *http.Request) (*http.Response, error) {
				time.Sleep(map[int]time.Duration{1: 30, 2: 5, 3: 40}[nth] * time.Millisecond)
				return nil, &net.OpError{Op: "read", Err: errors.New([]string{"one", "two", "three"}[nth-1])}
			})
		_, err := a.get(request(t, "GET", svc, nil))
		var failed *AttemptError
		if !errors.As(err, &failed) {
			t.Fatal(err)
		}
		seen := map[string]bool{failed.Endpoint: true}
		hedged := 0
		for _, ev := range failed.Earlier {
			if seen[ev.Endpoint] = true; ev.Hedge {
				hedged++
			}
			if ev.Attempt == failed.Attempt || ev.Target.Host != "svc.test" {
				t.Errorf("%+v is the last", ev)
			}
		}
		if len(failed.Earlier) != 2 || len(seen) != 3 || hedged != 1 {
			t.Errorf("%v: %+v, want each try once", err, failed.Earlier)
		}
		for _, want := range []string{"one", "two", "three"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q in it", err, want)
			}
		}
		a.Close()
	})
}

// With one try there is nothing to tell, and with an answer nobody to tell it to.
func TestErrorOfASingleTryHasNoOthers(t *testing.T) {
	a := act(t, 3, &Transport{}, func(int, string, *http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
	_, err := a.get(request(t, "POST", svc, nil))
	var failed *AttemptError
	if !errors.As(err, &failed) || failed.Earlier != nil || strings.Contains(err.Error(), "before that") {
		t.Errorf("%v", err)
	}
}

// What hides that the last try was not sent hides nothing else of its error.
func TestErrorOfALaterTryIsStillTheOneOfTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := &unreachedError{&net.OpError{Op: "dial", Err: context.DeadlineExceeded}}
		a := act(t, 3, &Transport{}, oneByOne(play{err: errBroken}, play{err: dial}, play{err: dial}))
		_, err := (&http.Client{Transport: a.Transport}).Do(request(t, "GET", svc, nil))
		var op *net.OpError
		var ue *url.Error
		if !errors.As(err, &op) || op.Op != "dial" || !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &ue) || !ue.Timeout() || errors.Is(err, ErrUnreached) {
			t.Errorf("%v", err)
		}
		a.Close()
	})
}
