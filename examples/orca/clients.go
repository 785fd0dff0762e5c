package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/httpclient"
)

// figures are what came of one way to balance.
type figures struct {
	shares    []float64       // of the servers
	latencies []time.Duration // in ascending order
}

// try starts servers and clients, lets them settle, and measures.
func try(ctx context.Context, s settings, c evenkeel.Config) (f figures, err error) {
	var backends []*backend
	defer func() {
		for _, b := range backends {
			err = errors.Join(err, b.stop())
		}
	}()
	var list httpclient.Static
	for _, r := range rooms {
		b, err := startBackend(r)
		if err != nil {
			return f, err
		}
		backends = append(backends, b)
		list = append(list, httpclient.Address{Addr: b.addr})
	}
	m := newMeter()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var sending sync.WaitGroup
	for range s.clients {
		sending.Go(func() {
			if err := send(ctx, &httpclient.Transport{Resolver: list, Config: c}, s.rate/float64(s.clients), m); err != nil {
				cancel(err)
			}
		})
	}
	wait(ctx, s.warmUp)
	m.start()
	for _, b := range backends {
		b.requests.Store(0)
	}
	wait(ctx, s.measure)
	for _, b := range backends {
		f.shares = append(f.shares, float64(b.requests.Load()))
	}
	f.latencies = m.stop()
	cause := context.Cause(ctx)
	cancel(nil)
	sending.Wait()
	if cause != nil {
		return f, cause
	}
	total := 0.0
	for _, n := range f.shares {
		total += n
	}
	if total == 0 {
		return f, errors.New("no request was answered")
	}
	for i := range f.shares {
		f.shares[i] /= total
	}
	return f, nil
}

func wait(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}

// send is one client: requests at random instants, whether or not the last one was answered, until ctx is
// done.
func send(ctx context.Context, tr *httpclient.Transport, rate float64, m *meter) error {
	defer tr.Close()
	client := &http.Client{Transport: tr}
	var open sync.WaitGroup
	defer open.Wait()
	failed := make(chan error, 1)
	for {
		wait(ctx, time.Duration(rand.ExpFloat64()/rate*float64(time.Second)))
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		default:
		}
		open.Go(func() {
			began := time.Now()
			if err := get(ctx, client); err != nil && ctx.Err() == nil {
				select {
				case failed <- err:
				default:
				}
				return
			}
			m.add(time.Since(began))
		})
	}
}

func get(ctx context.Context, client *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://service.test/", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// meter collects latencies while it is on.
type meter struct {
	mu  sync.Mutex
	on  bool
	all []time.Duration
}

func newMeter() *meter { return &meter{} }

func (m *meter) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.on = true
}

func (m *meter) add(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.on {
		m.all = append(m.all, d)
	}
}

func (m *meter) stop() []time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.on = false
	slices.Sort(m.all)
	return m.all
}

func (f figures) quantile(q float64) time.Duration {
	if len(f.latencies) == 0 {
		return 0
	}
	return f.latencies[int(q*float64(len(f.latencies)-1))]
}

func introduction(s settings) string {
	return fmt.Sprintf(`Three servers with 2, 6 and 12 places. Hidden work takes 2 places of the second and 3 of the third.
%d clients send %.0f requests a second together, of %v each.

%-16s %8s %8s %8s %10s %10s
`, s.clients, s.rate, work, "", "first", "second", "third", "median", "99 %")
}

func (f figures) row(name string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%-16s", name)
	for _, share := range f.shares {
		fmt.Fprintf(&text, " %6.0f %%", 100*share)
	}
	round := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
	fmt.Fprintf(&text, " %10v %10v\n", round(f.quantile(0.5)), round(f.quantile(0.99)))
	return text.String()
}

// evenShares are those with which all servers would be used alike.
func evenShares(s settings) []float64 {
	places, busy := 0.0, s.rate*work.Seconds()
	for _, r := range rooms {
		places += float64(r.places)
		busy += float64(r.hidden)
	}
	shares := make([]float64, len(rooms))
	for i, r := range rooms {
		shares[i] = (busy/places*float64(r.places) - float64(r.hidden)) / (s.rate * work.Seconds())
	}
	return shares
}

func wanted(s settings) string {
	return figures{shares: evenShares(s)}.withoutTimes("all used alike") + `
Least request sees next to nothing with so few requests of each client's own, and spreads them evenly. The
reports tell each client what all of them do, and what the servers do besides.
`
}

func (f figures) withoutTimes(name string) string {
	row := f.row(name)
	return strings.TrimRight(row[:len(row)-23], " ") + "\n"
}
