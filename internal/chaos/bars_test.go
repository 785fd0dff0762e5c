//go:build unix

package chaos

import "time"

// again is how long a server may take to get its share back. What a failure costs fades with a time
// constant of 10 s, and stops mattering at a tenth of a doubling: seven failures in a row take 35 s to get
// there.
const again = 40 * time.Second

// The bars of the troubles.
var (
	// Requests that fail at once teach by one step each.
	failing = bars{lost: 7, worst: 0.03, recovered: fast, returned: again, blind: true}
	// Those that hang teach by their age. What they teach of latency fades within minutes: while
	// others can do the work, there is no bar for the return that could be met here.
	hanging = bars{lost: 5, worst: 0.03, recovered: fast, blind: true}
	// What is on connections that break is lost, and gRPC asks nobody without a connection.
	unconnected = bars{lost: 4, worst: 0.01, recovered: fast, returned: again}
	// Nothing fails, and most of the harm that a blind client has is avoided. For the return, see
	// those that hang.
	slower = bars{worst: 0.04, recovered: fast, faster: 0.8}
	nobody = bars{recovered: fast}

	// Five failures eject, and then there is a probe after half a second, and after each of them that
	// fails, twice as long. Three that succeed bring back.
	ejected = bars{lost: 16, worst: 0.08, recovered: fast, returned: again}
	// Nobody is known to hang before the first deadline, and requests go on being sent until the fifth:
	// 11 to 14 are lost, and at most 23 were where the limit saw missed deadlines, too.
	silent = bars{lost: 30, worst: 0.12, recovered: 5 * time.Second, returned: again}
	// Who is slow has not failed. Round robin sends all that goes there; by requests in flight it is less.
	slowly = bars{worst: 0.13, recovered: fast}

	failedBars     = barsOf{failing, failing}
	lostConnection = barsOf{failing, unconnected}
	hung           = barsOf{hanging, hanging}
	slowed         = barsOf{slower, slower}
	noBars         = barsOf{nobody, nobody}
	guardedFailed  = barsOf{ejected, ejected}
	guardedLost    = barsOf{ejected, unconnected}
	// A reset takes along what else is on a connection, and gRPC connects anew between two failures.
	guardedReset = barsOf{ejected, bars{lost: 20, worst: 0.12, recovered: fast, returned: again}}
	guardedHung  = barsOf{silent, silent}
	// Who asks to be left alone is, by all of them, for as long as it asks. So there is no reference that
	// suffers.
	full             = bars{lost: 7, worst: 0.03, recovered: fast, returned: again}
	fullBars         = barsOf{full, full}
	guardedFull      = bars{success: 0.95, worst: 0.06, recovered: fast}
	guardedFullThree = bars{success: 0.88, worst: 0.06, recovered: fast}
)
