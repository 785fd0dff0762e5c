//go:build unix

package chaos

import (
	"fmt"
	"os"
	"slices"
	"strings"
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
	in := setting{size: 10, rate: 120, warmUp: 2 * time.Second, length: 3 * time.Second, after: 3 * time.Second, tries: 3}
	sufferAll(t, troubles(), in)
}

func TestLongBadDeployAtFourFifthsOfTheLoad(t *testing.T) {
	long(t)
	const size, load = 10, 0.8
	in := setting{size: size, single: true, warmUp: 3 * time.Second, length: 15 * time.Second, after: 5 * time.Second, tries: 3}
	one := 1 / (leastWork + moreWork/2).Seconds() // requests a second
	in.rate = load * size * one / 2               // over each adapter
	sufferAll(t, []trouble{badDeploy(1, contenders...), badDeploy(20, contenders...), badDeploy(1, reference)}, in)
}

// sufferAll runs troubles, some at a time, and logs their table.
func sufferAll(t *testing.T, all []trouble, in setting) {
	t.Helper()
	tables := make([]string, len(all))
	t.Run("each", func(t *testing.T) {
		for i, tr := range all {
			t.Run(fmt.Sprint(tr.name, " of ", tr.of[0].name), func(t *testing.T) {
				t.Parallel()
				tables[i] = suffer(t, tr, in)
			})
		}
	})
	tables = slices.DeleteFunc(tables, func(table string) bool { return table == "" })
	t.Log("\n" + head + "\n" + strings.Join(tables, "\n"))
}

// The rest of this package in small: a server of four is killed and comes back.
func TestServerKilledUnderLoad(t *testing.T) {
	tr := trouble{name: "killed", bad: 1, begin: kill, end: restart}
	tr.of = append(slices.Clone(contenders), reference)
	tr.http = bars{lost: 10, recovered: fast, blind: true}
	tr.grpc = bars{lost: 6, recovered: fast}
	in := setting{size: 4, rate: 80, warmUp: time.Second / 2, length: time.Second, after: time.Second, tries: 1}
	t.Log("\n" + head + "\n" + suffer(t, tr, in))
}
