package evenkeel_test

import (
	"fmt"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/picker"
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

func ExamplePool_Branch() {
	shared, err := evenkeel.NewPool[string](evenkeel.Config{Policy: picker.Least{}}, evenkeel.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer shared.Close()
	// Two users of a service, each with its own connections.
	var users []*evenkeel.Pool[string]
	for _, name := range []string{"orders", "invoices"} {
		user, err := shared.Branch()
		if err != nil {
			fmt.Println(err)
			return
		}
		err = user.Update([]evenkeel.Member[string]{
			{Endpoint: evenkeel.Endpoint{ID: "10.0.0.1:80"}, Handle: name + " to first"},
			{Endpoint: evenkeel.Endpoint{ID: "10.0.0.2:80"}, Handle: name + " to second"},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		users = append(users, user)
	}

	users[0].SetState("10.0.0.2:80", evenkeel.NotReady) // of orders alone
	busy, _ := users[0].Pick(evenkeel.Request{})
	fmt.Println(busy.Handle())
	next, _ := users[1].Pick(evenkeel.Request{}) // sees what orders has in flight
	fmt.Println(next.Handle())
	busy.Done(evenkeel.Result{Outcome: evenkeel.Success})
	next.Done(evenkeel.Result{Outcome: evenkeel.Success})
	// Output:
	// orders to first
	// invoices to second
}
