//go:build unix

package chaos

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// TestNothingIsLimitedWithoutDistress has long answers under way and sends a burst of requests: servers
// that are well get all of it at once, whatever the limits of a bad day.
func TestNothingIsLimitedWithoutDistress(t *testing.T) {
	burst(t, contenders[:1], 100, 100, 100)
}

func TestLongNothingIsLimitedWithoutDistress(t *testing.T) {
	long(t)
	burst(t, contenders, 1000, 500, 500)
}

// burst holds so many streams over gRPC, and downloads over HTTP, and sends so many requests.
func burst(t *testing.T, of []contender, streams, downloads, requests int) {
	t.Helper()
	fleet := startFleet(t, 4)
	for _, adapter := range []string{"http", "http2", "grpc"} {
		n := downloads
		if adapter == "grpc" {
			n = streams
		}
		for _, c := range of {
			t.Run(fmt.Sprint(c.name, " over ", adapter), func(t *testing.T) {
				burstOf(t, adapters[adapter](t, c, fleet), fleet, n, requests)
			})
		}
	}
}

func burstOf(t *testing.T, c *client, fleet []*server, streams, requests int) {
	t.Helper()
	arrived := func(requests, streams int) func() bool {
		return func() bool {
			var r, s int
			for _, srv := range fleet {
				ofOne, streamsOfOne := srv.held(t)
				r, s = r+ofOne, s+streamsOfOne
			}
			return r == requests && s == streams
		}
	}
	tell := func(order string) {
		for _, s := range fleet {
			s.tell(t, order)
		}
	}
	waitUntil(t, patience, "what was before is over", arrived(0, 0))
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	var all sync.WaitGroup
	defer all.Wait()
	held, leave := context.WithCancel(ctx)
	defer leave()
	for range streams {
		all.Go(func() {
			s, err := c.open(held, time.Minute)
			for ; err == nil; err = s.next() {
			}
			if held.Err() == nil {
				t.Errorf("a stream ended: %v", err)
			}
		})
	}
	waitUntil(t, patience, fmt.Sprint(streams, " streams are under way"), arrived(0, streams))
	tell(gather.String())
	var burst sync.WaitGroup
	for range requests {
		burst.Go(func() {
			if _, failure := c.call(ctx); failure != "" {
				t.Errorf("a request failed: %s", failure)
			}
		})
	}
	waitUntil(t, patience, fmt.Sprint(requests, " requests are there at once"), arrived(requests, streams))
	tell(work.String())
	burst.Wait()
	waitUntil(t, patience, "the streams alone are left", arrived(0, streams))
}
