package httpclient

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/outlier"
	"github.com/evenkeel/evenkeel/picker"
)

// A request beyond the limit is refused with an error that says so, and nothing of it is sent.
func TestRequestBeyondTheLimitIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		release := make(chan struct{})
		var well atomic.Bool
		tr := single(t, func(req *http.Request) (*http.Response, error) {
			sent.Add(1)
			if !well.Load() {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			<-release
			return answer(req, 200, ""), nil
		})
		for range 20 {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			if _, err := tr.RoundTrip(request(t, "GET", svc, nil).WithContext(ctx)); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			cancel()
		}
		well.Store(true)
		time.Sleep(3 * time.Second) // sweeps
		synctest.Wait()
		limit := one(t, tr).Limit
		if limit == 0 {
			t.Fatalf("no limit: %+v", one(t, tr))
		}
		answers := make(chan error)
		for range limit {
			go func() {
				_, err := tr.RoundTrip(request(t, "GET", svc, nil))
				answers <- err
			}()
		}
		synctest.Wait()
		before := sent.Load()
		body := &shutReader{Reader: strings.NewReader("x")}
		_, err := tr.RoundTrip(request(t, "POST", svc, body))
		if !errors.Is(err, evenkeel.ErrOverloaded) || !errors.Is(err, ErrUnreached) {
			t.Errorf("beyond the limit: %v", err)
		}
		if sent.Load() != before || !body.closed {
			t.Errorf("%d were sent beyond the limit; body closed: %v", sent.Load()-before, body.closed)
		}
		close(release)
		for range limit {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if n, _, _ := only(t, tr); n != 0 {
			t.Errorf("%d in flight at rest", n)
		}
	})
}

type shutReader struct {
	*strings.Reader
	closed bool
}

func (c *shutReader) Close() error {
	c.closed = true
	return nil
}

// The status of an answer reaches the rules: Envoy's count of gateway failures knows a 502 from a 500.
func TestStatusReachesTheRules(t *testing.T) {
	for status, ejected := range map[int]bool{500: false, 502: true, 503: true, 404: false, 200: false} {
		config := evenkeel.Config{Policy: picker.RoundRobin{}, Outlier: &outlier.Config{Mode: outlier.Envoy, MaxEjectionPercent: outlier.PercentOf(100),
			Panic: outlier.Panic{Threshold: outlier.PercentOf(0)},
			Envoy: outlier.EnvoyConfig{Consecutive5xx: outlier.Off, ConsecutiveGateway: 3, EnforceConsecutiveGateway: outlier.PercentOf(100)}}}
		tr := stubbed(t, &Transport{Resolver: Static{{Addr: "10.0.0.1"}, {Addr: "10.0.0.2"}}, Config: config},
			func(addr string, req *http.Request) (*http.Response, error) {
				code := 200
				if strings.HasPrefix(addr, "10.0.0.1") {
					code = status
				}
				return answer(req, code, ""), nil
			})
		for range 10 {
			resp, err := tr.RoundTrip(request(t, "GET", svc, nil))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		if e := endpointStats(t, one(t, tr), "10.0.0.1:80"); e.Available == ejected {
			t.Errorf("%d: available %v, %+v", status, e.Available, e.Ejection)
		}
	}
}
