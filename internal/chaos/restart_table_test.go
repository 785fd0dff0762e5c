//go:build unix

package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel"
)

// early is how long before a server ends its clients know.
const early = 200 * time.Millisecond

// down is how long a server is away, watched how long users send before and after that, and awaited how long
// all of them may take to be back at it.
const (
	down    = 100 * time.Millisecond
	watched = 150 * time.Millisecond
	awaited = 2 * time.Second
)

// shortChecks are for servers that announce their end by their checks. Nobody is out for a check that
// a busy machine is late with.
func shortChecks() *evenkeel.HealthConfig {
	return &evenkeel.HealthConfig{Protocol: evenkeel.CheckHTTP, Path: checkPath, Interval: 500 * time.Millisecond,
		Rise: 1, Fall: 100, UnexpectedAtOnce: true}
}

// restarts is a row of the restart table: how one of two servers ends, and what its clients are told.
type restarts struct {
	name string
	// how is the signal that ends it.
	how syscall.Signal
	// told, if set, tells a user that the second of two servers is about to end, or is back.
	told func(u *user, fleet []*server, back bool)
	// early says that this is some time before the end.
	early bool
	// checked says that the server tells by its checks, which users make.
	checked bool
	// idle is how long servers keep idle connections, and about how long workers wait between requests;
	// 0 is for ever and not at all.
	idle time.Duration
}

// announced says that whoever listens need not lose anything: servers that speak HTTP/2 say themselves which
// requests they will not do any more (GOAWAY), if they can.
func (r restarts) announced(p protocol) bool {
	return r.early || r.checked || p.version == 2 && r.how == syscall.SIGTERM
}

// restartTable are the ways.
func restartTable() []restarts {
	list := func(u *user, fleet []*server, back bool) {
		if back {
			u.find(fleet)
		} else {
			u.find(fleet[:1])
		}
	}
	drain := func(u *user, fleet []*server, back bool) {
		if back {
			u.tr.Resume(fleet[1].http)
		} else {
			u.tr.Drain(fleet[1].http)
		}
	}
	return []restarts{
		{name: "SIGTERM, nobody is told", how: syscall.SIGTERM},
		{name: "SIGTERM, list at that instant", how: syscall.SIGTERM, told: list},
		{name: "SIGTERM, list 200 ms before", how: syscall.SIGTERM, told: list, early: true},
		{name: "SIGTERM, Drain 200 ms before", how: syscall.SIGTERM, told: drain, early: true},
		{name: "SIGTERM, checks fail before", how: syscall.SIGTERM, checked: true},
		{name: "SIGTERM, and 2 ms of keep-alive", how: syscall.SIGTERM, idle: 2 * time.Millisecond},
		{name: "SIGKILL, nobody is told", how: syscall.SIGKILL},
		{name: "SIGKILL, list 200 ms before", how: syscall.SIGKILL, told: list, early: true},
	}
}

// One of two servers is restarted under load: no GET fails, whatever happens and whoever is told; no POST
// does if somebody is told in time, or else none that no server can have acted on; and none is acted
// on twice.
func TestRestartsOfServersFailNoRequest(t *testing.T) {
	restartAll(t, contenders[0], 1)
}

func TestLongRestartsOfServersFailNoRequest(t *testing.T) {
	long(t)
	for _, c := range contenders[:2] { // the default, and one that goes on asking in turn
		restartAll(t, c, 4)
	}
}

// restartAll runs the table, and logs it.
func restartAll(t *testing.T, c contender, times int) {
	t.Helper()
	var rows []*string
	turns := make(chan bool, 3)
	t.Run(c.name, func(t *testing.T) {
		for _, r := range restartTable() {
			for _, p := range protocols {
				row := new(string)
				rows = append(rows, row)
				t.Run(r.name+", "+p.name, func(t *testing.T) {
					t.Parallel()
					turns <- true
					defer func() { <-turns }()
					*row = r.run(t, p, c.config, times)
				})
			}
		}
	})
	table := []string{c.name, fmt.Sprintf("%-32s%-10s %13s %14s %14s %15s %15s", "", "", "GET lost of", "POST lost of", "no retries",
		"retries, denied", "back after")}
	for _, row := range rows {
		table = append(table, *row)
	}
	t.Log(strings.Join(table, "\n"))
}

// run restarts one server of two so many times, and returns a row.
func (r restarts) run(t *testing.T, p protocol, config evenkeel.Config, times int) (row string) {
	t.Helper()
	ledger := filepath.Join(t.TempDir(), "ledger")
	fleet := startDeployed(t, 2, r.deployment(p, ledger))
	if r.checked {
		config.Health = shortChecks()
		if p.tls {
			config.Health.Protocol = evenkeel.CheckHTTPS
		}
	}
	get := newUser(t, p, http.MethodGet, r.idle, config, nil)
	post := newUser(t, p, http.MethodPost, r.idle, config, nil)
	users := []*user{get, post}
	var control *user // who shows that there was something to lose
	if !r.checked && r.told == nil {
		control = newUser(t, p, http.MethodGet, time.Millisecond, reference.config, once)
		users = append(users, control)
	}
	for _, u := range users {
		u.find(fleet)
		u.begin()
	}
	for _, s := range fleet {
		back(t, users, s)
	}
	var longest time.Duration
	for range times {
		_ = pass(t.Context(), watched)
		longest = max(longest, r.restart(t, users, fleet))
		fleet[0], fleet[1] = fleet[1], fleet[0]
	}
	_ = pass(t.Context(), watched)
	for _, u := range users {
		u.halt()
	}
	r.judge(t, get, post, control, times, twice(t, ledger))
	return r.row(p, get, post, control, longest)
}

func (r restarts) deployment(p protocol, ledger string) deployment {
	return deployment{TLS: p.tls, Ledger: ledger, Notice: r.checked, Idle: r.idle, Bare: r.how == syscall.SIGKILL}
}

// startDeployed starts n servers that end with the test.
func startDeployed(t *testing.T, n int, d deployment) []*server {
	t.Helper()
	settings, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	fleet := make([]*server, n)
	for i := range fleet {
		fleet[i] = &server{env: restartedEnv + "=" + string(settings)}
		t.Cleanup(fleet[i].kill)
		if err := fleet[i].startAnywhere(); err != nil {
			t.Fatal(err)
		}
	}
	return fleet
}

// restart restarts the second server, and returns how long it took users to be back at it.
func (r restarts) restart(t *testing.T, users []*user, fleet []*server) time.Duration {
	t.Helper()
	tell := func(back bool) {
		for _, u := range users {
			if r.told != nil {
				r.told(u, fleet, back)
			}
		}
	}
	tell(false)
	if r.checked {
		allWell(t, users, fleet)
		fleet[1].signal(t, r.how)
	}
	if r.early || r.checked {
		noticed(t, users, fleet[1])
		_ = pass(t.Context(), early)
	}
	fleet[1].signal(t, r.how)
	if r.how == syscall.SIGKILL {
		fleet[1].kill()
	} else {
		fleet[1].ended(t)
	}
	_ = pass(t.Context(), down)
	fleet[1].restart(t)
	tell(true)
	return back(t, users, fleet[1])
}

// allWell waits until users have found all servers well: else they might not have anybody left who is, and then they
// believe no check.
func allWell(t *testing.T, users []*user, fleet []*server) {
	t.Helper()
	waitUntil(t, patience, "all checks pass", func() bool {
		return !slices.ContainsFunc(users, func(u *user) bool { return u.well() < len(fleet) })
	})
}

// noticed waits until users know that they should not use a server.
func noticed(t *testing.T, users []*user, s *server) {
	t.Helper()
	waitUntil(t, patience, "nobody uses "+s.http, func() bool {
		return !slices.ContainsFunc(users, func(u *user) bool { return u.uses(s) })
	})
}

// back waits until users have answers of a process: some in any case, and all for a while, since who judges
// servers may have reasons not to be back soon. It returns how long that took.
func back(t *testing.T, users []*user, s *server) time.Duration {
	t.Helper()
	began := time.Now()
	process := strconv.Itoa(s.cmd.Process.Pid)
	waitUntil(t, patience, "answers of "+process, func() bool {
		n := 0
		for _, u := range users {
			if u.served(process) > 0 {
				n++
			}
		}
		return n == len(users) || n > 0 && time.Since(began) > awaited
	})
	return time.Since(began)
}

// judge holds what users saw against what is promised.
func (r restarts) judge(t *testing.T, get, post, control *user, times, twice int) {
	t.Helper()
	if n := len(get.lost); n > 0 {
		t.Errorf("%d of %d GETs failed: %v", n, get.sent.Load(), get.lost[n-1])
	}
	if n := len(post.lost); n > 0 && r.announced(get.protocol) {
		t.Errorf("%d of %d POSTs failed, though the end was announced: %v", n, post.sent.Load(), post.lost[n-1])
	}
	for _, err := range post.lost {
		if !actedOn(err) {
			t.Errorf("%d POSTs failed that could have been sent again: %v", post.unsent, err)
			break
		}
	}
	if n := len(post.lost); r.idle == 0 && n > workers*times {
		t.Errorf("%d POSTs failed in %d restarts, want no more than can be under way, %d each: %v", n, times, workers, post.lost[n-1])
	}
	if twice > 0 {
		t.Errorf("%d POSTs were acted on twice", twice)
	}
	if control != nil && len(control.lost) == 0 {
		t.Errorf("nothing happened: without retries none of %d GETs failed", control.sent.Load())
	}
}

// row is what the table says.
func (r restarts) row(p protocol, get, post, control *user, back time.Duration) string {
	of := func(u *user) string {
		if u == nil {
			return ""
		}
		return fmt.Sprintf("%d of %d", len(u.lost), u.sent.Load())
	}
	var retries, refused uint64
	for _, u := range []*user{get, post} {
		for _, s := range u.tr.Snapshot() {
			retries, refused = retries+s.Retries, refused+s.RefusedByBudget
		}
	}
	return fmt.Sprintf("%-32s%-10s %13s %14s %14s %15s %15v", r.name, p.name, of(get), of(post), of(control),
		fmt.Sprint(retries, ", ", refused), back.Round(time.Millisecond))
}

// twice is how many numbers are in a ledger more than once. An empty ledger is an error.
func twice(t *testing.T, ledger string) (n int) {
	t.Helper()
	all, err := os.ReadFile(ledger)
	if err != nil || len(all) == 0 {
		t.Fatalf("the ledger has %d bytes, %v", len(all), err)
	}
	times := map[string]int{}
	for line := range bytes.Lines(all) {
		if times[string(line)]++; times[string(line)] == 2 {
			n++
		}
	}
	return n
}
