package grpcresolver

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/evenkeel/evenkeel/httpclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	svc     = httpclient.Target{Scheme: "http", Host: "svc.test", Port: "8080"}
	errTest = errors.New("no answer")
)

// noted is a Sink that keeps what it is told. Its zero value gives no hints.
type noted struct {
	hints chan struct{}

	mu     sync.Mutex
	lists  []string // "address=weight", sorted
	errs   []error
	refuse error
}

func (n *noted) Update(list []httpclient.Address) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []string
	for _, a := range list {
		text := a.Addr
		if a.Weight.IsSet() {
			text += "=" + a.Weight.String()
		}
		all = append(all, text)
	}
	slices.Sort(all)
	n.lists = append(n.lists, strings.Join(all, " "))
	return n.refuse
}

func (n *noted) Error(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.errs = append(n.errs, err)
}

func (n *noted) Refresh() <-chan struct{} { return n.hints }

// last returns the last list, "no list" before the first, and the last error.
func (n *noted) last() (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	list, err := "no list", error(nil)
	if len(n.lists) > 0 {
		list = n.lists[len(n.lists)-1]
	}
	if len(n.errs) > 0 {
		err = n.errs[len(n.errs)-1]
	}
	return list, err
}

// told returns how many lists and errors there were.
func (n *noted) told() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.lists) + len(n.errs)
}

// eventually waits for what other goroutines are about to do.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(10 * time.Second); !ok(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}
