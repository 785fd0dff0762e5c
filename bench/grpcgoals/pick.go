package main

import (
	"context"
	"fmt"
	"io"

	"google.golang.org/grpc/balancer"
)

// sampleRounds is how often each policy is sampled, by turns; the least counts.
const sampleRounds = 7

// picks measures a pick and its end.
func picks(s settings, w io.Writer) error {
	fmt.Fprintf(w, "\npick + done: ns of CPU, the least of %d samples of %d; allocations; times round_robin\n", sampleRounds, s.picks)
	fmt.Fprintf(w, "%-24s %6s %8s %8s %8s\n", "policy", "n", "ns", "allocs", "ratio")
	for _, n := range []int{10, 100, 1000} {
		channels := make([]*fakeChannel, len(peers))
		for i, p := range peers {
			c, b, err := p.started(addresses(n))
			if err != nil {
				return err
			}
			defer b.Close()
			c.settle(n)
			channels[i] = c
		}
		ns, allocs := make([][]float64, len(peers)), make([]float64, len(peers))
		for range sampleRounds {
			for i, c := range channels {
				u := measured(func() { pickMany(c.picker(), s.picks) })
				ns[i] = append(ns[i], float64(u.cpu.Nanoseconds())/float64(s.picks))
				allocs[i] = float64(u.allocs) / float64(s.picks)
			}
		}
		for i, p := range peers {
			fmt.Fprintf(w, "%-24s %6d %8.0f %8.2f %8.2f\n", p.name, n, least(ns[i]), allocs[i], least(ns[i])/least(ns[0]))
		}
	}
	return nil
}

type contextKey struct{}

func pickMany(p balancer.Picker, n int) {
	info := balancer.PickInfo{FullMethodName: "/s/m", Ctx: context.WithValue(context.Background(), contextKey{}, 0)}
	done := balancer.DoneInfo{BytesSent: true, BytesReceived: true}
	for range n {
		result, err := p.Pick(info)
		if err == nil && result.Done != nil {
			result.Done(done)
		}
	}
}
