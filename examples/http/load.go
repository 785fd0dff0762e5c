package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// tally is what became of requests.
type tally struct {
	mu     sync.Mutex
	sent   int
	posts  int
	by     map[string]int // answers, by backend
	failed int
	last   error // of those
}

// load sends requests to a proxy, whether or not the last one was answered.
type load struct {
	*tally
	cancel context.CancelFunc
	all    sync.WaitGroup
	client *http.Client
}

// startLoad sends rate requests a second until stop is called. Every fourth is a POST.
func startLoad(url string, rate float64) *load {
	ctx, cancel := context.WithCancel(context.Background())
	tr := &http.Transport{MaxIdleConnsPerHost: 64}
	l := &load{tally: &tally{by: map[string]int{}}, cancel: cancel, client: &http.Client{Transport: tr, Timeout: 5 * time.Second}}
	l.all.Go(func() {
		due := time.NewTicker(time.Duration(float64(time.Second) / rate))
		defer due.Stop()
		for i := 0; ; i++ {
			select {
			case <-due.C:
				method := http.MethodGet
				if i%4 == 3 {
					method = http.MethodPost
				}
				l.all.Go(func() { l.request(method, url) })
			case <-ctx.Done():
				return
			}
		}
	})
	return l
}

// stop waits for the requests that are under way. It may be called again.
func (l *load) stop() {
	l.cancel()
	l.all.Wait()
	l.client.CloseIdleConnections()
}

func (l *load) request(method, url string) {
	body := ""
	if method == http.MethodPost {
		body = "an order"
	}
	by, err := l.send(method, url, body)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	if method == http.MethodPost {
		l.posts++
	}
	if err != nil {
		l.failed, l.last = l.failed+1, err
		return
	}
	l.by[by]++
}

// send sends one request, and says which backend answered.
func (l *load) send(method, url, body string) (by string, err error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	switch echo, err := io.ReadAll(resp.Body); {
	case err != nil:
		return "", err
	case resp.StatusCode != http.StatusOK || !bytes.Equal(echo, []byte(body)):
		return "", fmt.Errorf("the proxy says %s to a %s, %q", resp.Status, method, echo)
	}
	return resp.Header.Get(servedBy), nil
}

// report says it for a reader.
func (t *tally) report() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var text strings.Builder
	fmt.Fprintf(&text, "\n%d requests, of which %d POSTs\n", t.sent, t.posts)
	for _, name := range slices.Sorted(maps.Keys(t.by)) {
		fmt.Fprintf(&text, "%s: %.1f %%\n", name, 100*float64(t.by[name])/float64(t.sent))
	}
	fmt.Fprintf(&text, "%d failed requests\n", t.failed)
	return text.String()
}

// problem is an error if a request failed, or none was sent.
func (t *tally) problem() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.failed > 0:
		return fmt.Errorf("%d of %d requests failed, the last: %w", t.failed, t.sent, t.last)
	case t.sent == 0:
		return errors.New("no request was sent")
	}
	return nil
}
