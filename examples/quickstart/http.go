package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/evenkeel/evenkeel/httpclient"
)

// evenkeelHTTP is a connectFunc. One URL stands for the whole fleet.
func evenkeelHTTP(_ context.Context, addrs []string) (callFunc, func() error, error) {
	var fleet httpclient.Static // stands for DNS
	for _, addr := range addrs {
		fleet = append(fleet, httpclient.Address{Addr: addr})
	}
	transport := &httpclient.Transport{Resolver: fleet}
	client := &http.Client{Transport: transport}
	call := func(ctx context.Context, work time.Duration) error {
		return get(ctx, client, "http://orders.example/", work)
	}
	hangUp := func() error {
		transport.Close()
		return nil
	}
	return call, hangUp, nil
}

// roundRobinHTTP is a connectFunc. It has a URL for each server and takes them in
// turn, as clients do that were given a list.
func roundRobinHTTP(_ context.Context, addrs []string) (callFunc, func() error, error) {
	// As many idle connections as Evenkeel keeps, so that this is no difference.
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	client := &http.Client{Transport: transport}
	var turn atomic.Uint64
	call := func(ctx context.Context, work time.Duration) error {
		addr := addrs[(turn.Add(1)-1)%uint64(len(addrs))]
		return get(ctx, client, "http://"+addr+"/", work)
	}
	hangUp := func() error {
		transport.CloseIdleConnections()
		return nil
	}
	return call, hangUp, nil
}

// get makes one request. Whatever is not the answer 200, read to its end, is an error.
func get(ctx context.Context, client *http.Client, base string, work time.Duration) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		base+"?"+url.Values{"work": {work.String()}}.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the server says %s", resp.Status)
	}
	return nil
}

// httpWork is the service: it works for as long as the query says.
func httpWork(b *backend) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		work, err := time.ParseDuration(r.FormValue("work"))
		if err != nil || work < 0 {
			http.Error(w, "work is no duration", http.StatusBadRequest)
			return
		}
		switch err := b.handle(r.Context(), work); {
		case errors.Is(err, errBroken):
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case err != nil:
			// The client is gone, and with it the connection: nobody to answer.
		default:
			// A client that left meanwhile makes this fail, which changes nothing.
			_, _ = io.WriteString(w, "done\n")
		}
	}
}

// serveHTTP is a serveFunc.
func serveHTTP(l net.Listener, b *backend) (stop func() error) {
	s := &http.Server{Handler: httpWork(b), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err := s.Shutdown(ctx) // waits for the handlers
		if e := <-served; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
		return err
	}
}
