//go:build unix

package chaos

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// long skips a test of minutes unless EVENKEEL_LONG is 1.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("EVENKEEL_LONG") != "1" {
		t.Skip("EVENKEEL_LONG is not 1")
	}
}

func TestLongServersInTrouble(t *testing.T) {
	long(t)
	in := setting{size: 10, rate: 120, adapters: []string{"http", "http2", "grpc"}, atOnce: 3,
		warmUp: 2 * time.Second, length: 3 * time.Second, after: 3 * time.Second, tries: 3}
	sufferAll(t, troubles(), in)
}

func TestLongStreamsBesideShortRequests(t *testing.T) {
	long(t)
	in := setting{size: 10, rate: 120, adapters: []string{"http2", "grpc"}, atOnce: 3,
		warmUp: 2 * time.Second, length: 3 * time.Second, after: 3 * time.Second, tries: 3}
	sufferAll(t, troublesOfStreams(), in)
}

// deployRate is four fifths of what ten servers can do that do one request at a time, in requests a second.
const deployRate = 0.8 * 10 / 0.035

func TestLongBadDeployAtFourFifthsOfTheLoad(t *testing.T) {
	long(t)
	in := setting{size: 10, single: true, rate: deployRate, adapters: []string{"http", "grpc"}, atOnce: 5,
		warmUp: 3 * time.Second, length: 12 * time.Second, after: 4 * time.Second, tries: 3}
	all := []trouble{badDeploy(1, reference)}
	for _, clients := range []int{1, 20, 100} {
		for _, c := range contenders {
			all = append(all, badDeploy(clients, c))
		}
	}
	slices.Reverse(all) // the longest first
	sufferAll(t, all, in)
}

// sufferAll runs troubles, some at a time, and logs their table. When the machine spoils nearly all of
// them nothing is proven.
func sufferAll(t *testing.T, all []trouble, in setting) {
	t.Helper()
	tables := make([]string, len(all))
	var begun atomic.Int32 // -run may leave some out
	turns := make(chan bool, in.atOnce)
	t.Run("each", func(t *testing.T) {
		for i, tr := range all {
			name := tr.name
			if len(tr.of) == 1 {
				name = fmt.Sprint(name, " of ", tr.of[0].name)
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				begun.Add(1)
				turns <- true
				defer func() { <-turns }()
				tables[i] = suffer(t, tr, in)
			})
		}
	})
	tables = slices.DeleteFunc(tables, func(table string) bool { return table == "" })
	t.Log("\n" + head + "\n" + strings.Join(tables, "\n"))
	if n := int(begun.Load()); 4*len(tables) < n {
		t.Errorf("%d of %d troubles came to a result: this machine is too busy for this test", len(tables), n)
	}
}

// The rest of this package in small: a server of four is killed and comes back.
func TestServerKilledUnderLoad(t *testing.T) {
	tr := trouble{name: "killed", bad: 1, begin: kill, end: restart}
	tr.of = append(slices.Clone(contenders), reference)
	tr.learning = barsOf{http: bars{lost: 10, recovered: fast, blind: true}, grpc: bars{lost: 6, recovered: fast}}
	tr.guarded = barsOf{http: bars{lost: 12, recovered: fast}, grpc: bars{lost: 6, recovered: fast}}
	in := setting{size: 4, rate: 80, adapters: []string{"http", "http2", "grpc"},
		warmUp: time.Second / 2, length: time.Second, after: time.Second, tries: 2}
	t.Log("\n" + head + "\n" + suffer(t, tr, in))
}
