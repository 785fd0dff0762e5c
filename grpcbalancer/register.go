package grpcbalancer

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/balancer"

	"github.com/evenkeel/evenkeel"
)

// Register makes a gRPC policy of another name that balances by c. It is for what JSON
// cannot say: a policy or a signal of your own. Like balancer.Register it must be
// called from an init function, since gRPC's registry is not safe for concurrent use.
//
//	func init() {
//		c := evenkeel.Config{Policy: picker.P2C{Signal: mySignal{}}}
//		if err := grpcbalancer.Register("my_signal", c); err != nil {
//			panic(err)
//		}
//	}
//
// A service config chooses it as {"my_signal": {}}. The braces take the same config as
// those of "evenkeel"; what is in there overrides c, field by field of
// [evenkeel.Config], and what is left out, or null, is c's.
//
// The name must not be empty, be in lower case, contain no '/' (what xDS separates names
// by), and be no policy's that is registered already. The error says all that is wrong
// with name and c, and then nothing is registered.
func Register(name string, c evenkeel.Config) error {
	var problems []error
	refuse := func(want string) {
		problems = append(problems, fmt.Errorf("grpcbalancer: name is %q, want %s", name, want))
	}
	if name == "" {
		refuse("one that is not empty")
	}
	if name != strings.ToLower(name) {
		refuse("it in lower case")
	}
	if strings.Contains(name, "/") {
		refuse("one without '/'")
	}
	if balancer.Get(name) != nil {
		refuse("one that no policy has")
	}
	if err := errors.Join(c.Validate(), checkKeys(c.Keys), checkHealth(c.Health)); err != nil {
		problems = append(problems, fmt.Errorf("grpcbalancer: config of %q: %w", name, err))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	balancer.Register(builder{name: name, base: c})
	return nil
}
