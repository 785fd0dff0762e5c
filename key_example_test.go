package evenkeel_test

import (
	"context"
	"fmt"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/hash"
	"github.com/evenkeel/evenkeel/picker"
)

// A transport of one's own tells the pool the key, here that of the request's context.
func ExampleWithKey() {
	pool, err := evenkeel.NewPool[string](evenkeel.Config{Policy: picker.Hash{}}, evenkeel.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	err = pool.Update([]evenkeel.Member[string]{
		{Endpoint: evenkeel.Endpoint{ID: "10.0.0.1:80"}, Handle: "first"},
		{Endpoint: evenkeel.Endpoint{ID: "10.0.0.2:80"}, Handle: "second"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	send := func(ctx context.Context) string {
		var r evenkeel.Request
		if key, ok := evenkeel.KeyFromContext(ctx); ok {
			r.Key, r.HasKey = hash.Sum(key), true
		}
		pick, err := pool.Pick(r)
		if err != nil {
			return err.Error()
		}
		defer pick.Done(evenkeel.Result{Outcome: evenkeel.Success})
		return pick.Handle()
	}
	alice := evenkeel.WithKey(context.Background(), "alice")
	first := send(alice)
	fmt.Println(send(alice) == first, send(alice) == first)
	// Output: true true
}
