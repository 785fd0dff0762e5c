package evenkeel_test

import (
	"fmt"

	"github.com/evenkeel/evenkeel"
)

func ExamplePool() {
	pool, err := evenkeel.NewPool[string](evenkeel.Config{}, evenkeel.Options{})
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
	pool.SetState("10.0.0.1:80", evenkeel.NotReady)

	pick, err := pool.Pick(evenkeel.Request{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pick.Handle()) // and send the request with it
	pick.Done(evenkeel.Result{Outcome: evenkeel.Success})
	// Output: second
}
