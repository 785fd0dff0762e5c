package evenkeel

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Key is one place in a request where its affinity key may be: what policies that hash
// send requests by. Exactly one field is set.
//
//	evenkeel.Config{Policy: ..., Keys: []evenkeel.Key{{Header: "X-User"}, {Cookie: "session"}}}
type Key struct {
	// Header is the name of a header, in gRPC of metadata, in any case. Several values count
	// as one, joined by commas, as gRFC A76 says. In gRPC the name must not end in "-bin".
	Header string
	// Cookie is the name of a cookie of the request; of several the first that is not
	// empty counts. HTTP only.
	Cookie string
	// Query is the name of a parameter in the URL's query, of which the first value counts.
	// HTTP only.
	Query string
	// Path means the path of the URL, decoded and without the query; in gRPC that is the
	// full method, "/package.Service/Method".
	Path bool
	// Context means the key of the request's context; see [WithKey].
	Context bool
}

// maxKeys bounds Config.Keys: each is looked for in a request that has none of them.
const maxKeys = 16

// KeyUser is a [Policy] that may look at [Request].Key. The adapters look for a request's
// key only under policies whose UsesKey returns true, since looking has a cost.
type KeyUser interface {
	// UsesKey reports whether Pickers of the policy, as it is set, use keys.
	UsesKey() bool
}

// UsesKey reports whether the policy of c, which is valid, is a [KeyUser] that uses keys.
func (c Config) UsesKey() bool {
	u, ok := c.policy().(KeyUser)
	return ok && u.UsesKey()
}

// contextKey is the key that a context keeps an affinity key by.
type contextKey struct{}

// WithKey returns a context for a request that has this affinity key. Requests with equal
// keys go to the same endpoint, under policies that hash, as long as it is available. An
// empty key is none, and hides one that ctx has.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, contextKey{}, key)
}

// KeyFromContext returns the affinity key that ctx was given by [WithKey]; false if it has
// none. It does not allocate.
func KeyFromContext(ctx context.Context) (key string, ok bool) {
	key, _ = ctx.Value(contextKey{}).(string)
	return key, key != ""
}

// validateKeys reports every problem of Config.Keys.
func validateKeys(keys []Key) (problems []error) {
	if len(keys) > maxKeys {
		return []error{fmt.Errorf("evenkeel: Config.Keys has %d keys, want at most %d", len(keys), maxKeys)}
	}
	for i, k := range keys {
		at := fmt.Sprintf("evenkeel: Config.Keys[%d]", i)
		if err := k.validate(at); err != nil {
			problems = append(problems, err)
			continue
		}
		same := func(other Key) bool {
			return strings.EqualFold(other.Header, k.Header) && other.Cookie == k.Cookie &&
				other.Query == k.Query && other.Path == k.Path && other.Context == k.Context
		}
		if first := slices.IndexFunc(keys[:i], same); first >= 0 {
			problems = append(problems, fmt.Errorf("%s is the same as Keys[%d], want each once", at, first))
		}
	}
	return problems
}

// validate reports what is wrong with k, which errors call at.
func (k Key) validate(at string) error {
	var given []string
	for name, value := range reflect.ValueOf(k).Fields() {
		if !value.IsZero() {
			given = append(given, name.Name)
		}
	}
	switch len(given) {
	case 0:
		return fmt.Errorf("%s is empty, want one of Header, Cookie, Query, Path and Context", at)
	case 1:
	default:
		return fmt.Errorf("%s has %s, want one of them", at, strings.Join(given, " and "))
	}
	const token = "letters, digits and any of !#$%&'*+-.^_`|~"
	return errors.Join(
		checkName(at+".Header", k.Header, "a name of "+token, isToken(k.Header)),
		checkName(at+".Cookie", k.Cookie, "a name of "+token, isToken(k.Cookie)),
		checkName(at+".Query", k.Query, "UTF-8", utf8.ValidString(k.Query)),
	)
}

// maxKeyName bounds the names in a Key.
const maxKeyName = 256

// checkName reports a name that is too long, or not what it should be.
func checkName(at, name, want string, ok bool) error {
	switch {
	case len(name) > maxKeyName:
		return fmt.Errorf("%s has %d bytes, want at most %d", at, len(name), maxKeyName)
	case !ok:
		return fmt.Errorf("%s is %q, want %s", at, name, want)
	}
	return nil
}

// isToken reports whether s may be the name of a header and of a cookie (RFC 9110, 5.6.2,
// and RFC 6265, 4.1.1), or is empty.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		letterOrDigit := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letterOrDigit && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return true
}
