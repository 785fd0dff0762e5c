package grpcbalancer

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/metadata"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/hash"
)

// affinity is where calls have their keys. It is immutable.
type affinity struct{ keys []evenkeel.Key } // with headers in lower case, as metadata has them

// affinityOf returns where c, which is valid, says that keys are; nil if its policy does
// not use them.
func affinityOf(c evenkeel.Config) *affinity {
	if !c.UsesKey() {
		return nil
	}
	if len(c.Keys) == 0 {
		return &affinity{[]evenkeel.Key{{Context: true}}}
	}
	a := &affinity{make([]evenkeel.Key, len(c.Keys))}
	for i, k := range c.Keys {
		k.Header = strings.ToLower(k.Header)
		a.keys[i] = k
	}
	return a
}

// checkKeys reports every key that no call can have. To take such a key for one that
// happens to be absent would turn affinity off without a word.
func checkKeys(keys []evenkeel.Key) error {
	var problems []error
	for i, k := range keys {
		refuse := func(field, value, want string) {
			problems = append(problems, fmt.Errorf("grpcbalancer: Keys[%d].%s is %q, want %s", i, field, value, want))
		}
		switch {
		case k.Cookie != "":
			refuse("Cookie", k.Cookie, "a header, the path or the context: gRPC has no cookies")
		case k.Query != "":
			refuse("Query", k.Query, "a header, the path or the context: gRPC has no query")
		case strings.HasSuffix(strings.ToLower(k.Header), "-bin"): // "the configuration is also rejected" - A76
			refuse("Header", k.Header, `a name that does not end in "-bin"`)
		case strings.ContainsAny(k.Header, "!#$%&'*+^`|~"):
			refuse("Header", k.Header, "a name that metadata can have: letters, digits, '-', '_' and '.'")
		}
	}
	return errors.Join(problems...)
}

// hash returns the hash of the call's key; false if it has none.
func (a *affinity) hash(info balancer.PickInfo) (sum uint64, ok bool) {
	key := a.find(info)
	if key == "" {
		return 0, false
	}
	return hash.Sum(key), true
}

// find returns the first key that is not empty, or "".
func (a *affinity) find(info balancer.PickInfo) (key string) {
	var md metadata.MD // copied when it is needed, and once
	for _, k := range a.keys {
		switch {
		case k.Path:
			key = info.FullMethodName
		case info.Ctx == nil:
		case k.Context:
			key, _ = evenkeel.KeyFromContext(info.Ctx)
		default:
			if md == nil {
				md, _ = metadata.FromOutgoingContext(info.Ctx)
			}
			// "If request_hash_header contains multiple values, then values are joined
			// with a comma" - A76
			key = strings.Join(md[k.Header], ",")
		}
		if key != "" {
			return key
		}
	}
	return ""
}
