//go:build unix

package chaos

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// A canary is a client of servers that nothing happens to, each in turn, without any balancing. When its
// requests take long it is the machine that stood still, and what others saw then says nothing.
const (
	canaryRate = 60
	// canaryWait is how much longer than work a request may take.
	canaryWait = 100 * time.Millisecond
	// mostStuck is how many of them may take longer before or during a trouble: clients learn from
	// what they saw before.
	mostStuck = 0.05
	// mostBlamed is how many of them may take longer in all, and half of how many before and during
	// a trouble, if somebody else is to blame for what went wrong.
	mostBlamed = 0.005
)

func newCanary(t *testing.T, fleet []*server) *client {
	t.Helper()
	tr := &http.Transport{MaxIdleConnsPerHost: canaryRate}
	t.Cleanup(tr.CloseIdleConnections)
	user := &http.Client{Transport: tr}
	var next atomic.Uint64
	call := func(ctx context.Context) (addr, failure string) {
		addr = fleet[next.Add(1)%uint64(len(fleet))].http
		return addr, get(ctx, user, "http://"+addr+"/")
	}
	return &client{adapter: "http", contender: contender{name: "canary"}, call: call}
}

// stuck are a canary's requests that show that the machine stood still.
func (s samples) stuck() samples {
	return s.that(func(x sample) bool { return x.failure != "" || x.end-x.start > leastWork+moreWork+canaryWait })
}
