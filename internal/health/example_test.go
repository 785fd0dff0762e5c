package health_test

import (
	"fmt"
	"time"

	"github.com/evenkeel/evenkeel/internal/health"
)

func ExampleChecks() {
	k, err := health.NewChecks(health.Config{Fall: 1}, func() uint64 { return 1 << 63 })
	if err != nil {
		fmt.Println(err)
		return
	}
	k.Update([]string{"10.0.0.1:80"}, 0)
	k.Used(0)
	for _, r := range []health.Result{health.Passed, health.Failed} {
		now := k.Next()
		c, _ := k.Due(now)
		// Here the prober would send something, without the lock.
		if change, changed := k.Done(c, r, "as it went", now); changed {
			fmt.Println(time.Duration(now), change.ID, change.To)
		}
	}
	// Output:
	// 0s 10.0.0.1:80 healthy
	// 5s 10.0.0.1:80 unhealthy
}
