package limit_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel/internal/limit"
)

func ExampleLimiter() {
	l, err := limit.New(limit.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	second := int64(time.Second)
	next := l.Sweep(0, 0)
	for range 50 { // nothing has gone wrong: all may begin
		l.Acquire()
	}
	for range 20 {
		l.Release()
		l.Observe(limit.TimedOut, second, second)
	}
	l.Sweep(next, 30)
	n, on := l.Limit()
	fmt.Println("limit", n, on)
	if !l.Acquire() {
		fmt.Println(l.Err(), errors.Is(l.Err(), limit.ErrOverloaded))
	}
	// Output:
	// limit 30 true
	// evenkeel: overloaded: the limit of 30 requests in flight of this pool is reached true
}

func ExampleBudget() {
	b, err := limit.NewBudget(limit.BudgetConfig{PerSecond: limit.None})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 10 {
		b.Begin(0)
	}
	retries := 0
	for range 10 { // all fail
		if g, ok := b.Try(0); ok {
			retries++
			g.End()
		}
	}
	fmt.Println(retries, "of 10 are tried again")
	// Output: 2 of 10 are tried again
}
