package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/evenkeel/evenkeel/grpcbalancer"
)

// lines is written to by several goroutines.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

func (l *lines) printf(format string, a ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.to, format, a...)
}

// table shows the state of each channel.
func table(channels []grpcbalancer.ChannelStats) string {
	var b strings.Builder
	for _, c := range channels {
		fmt.Fprintf(&b, "%s: %v, %d of %d connections ready\n", c.Target, c.State, c.Ready, len(c.Connections))
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "  replica\tconnection\tin flight\tcalls\tlatency\t")
		for i, e := range c.Pool.Endpoints {
			state := "-"
			if i < len(c.Connections) && c.Connections[i].Endpoint == e.ID {
				state = c.Connections[i].State.String()
			}
			fmt.Fprintf(w, "  %s\t%s\t%d\t%d\t%.1f ms\t%s\n", e.ID, state, e.InFlight, e.Picks, e.Latency.Seconds()*1e3, strings.Join(e.Reasons(), ", "))
		}
		_ = w.Flush() // a strings.Builder takes everything
	}
	return b.String()
}
