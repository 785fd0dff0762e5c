package limit

import (
	"errors"
	"fmt"
)

// ErrOverloaded is what every refusal by a limit of this client is, for errors.Is.
var ErrOverloaded = errors.New("evenkeel: overloaded")

// Overload is the error of a request that a limit refused. errors.Is(err,
// [ErrOverloaded]) is true.
type Overload struct {
	// Limit is the number of requests that may be in flight.
	Limit int
	// Endpoint says that the limit is one endpoint's, not the pool's.
	Endpoint bool
}

// Error tells the limit.
func (e *Overload) Error() string {
	of := "this pool"
	if e.Endpoint {
		of = "each endpoint"
	}
	return fmt.Sprintf("evenkeel: overloaded: the limit of %d requests in flight of %s is reached", e.Limit, of)
}

// Is reports whether target is [ErrOverloaded].
func (e *Overload) Is(target error) bool { return target == ErrOverloaded }
