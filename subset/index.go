package subset

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// IndexSource says where a client's index comes from.
type IndexSource uint8

// The sources of an index. None is ever tried by itself: an index that is wrong is worse than
// none, because two clients of one index have one subset.
const (
	// NoIndex means that the client has none.
	NoIndex IndexSource = iota
	// GivenIndex is Index.Value.
	GivenIndex
	// EnvironmentIndex is what the environment variable Index.Variable says: a number, as in
	// JOB_COMPLETION_INDEX, or a name that ends in one, as in a pod's name; see [Ordinal].
	EnvironmentIndex
	// HostIndex is the ordinal of the host's name; see [Ordinal].
	HostIndex
)

// Index is where a client's index comes from. The zero Index is none.
type Index struct {
	// Source says which of the fields below counts, if any.
	Source IndexSource
	// Value is the index of GivenIndex, from 0.
	Value int
	// Variable is the name of the variable of EnvironmentIndex.
	Variable string
}

// IndexOf returns an index that the caller knows.
func IndexOf(i int) Index { return Index{Source: GivenIndex, Value: i} }

// IndexFromEnv returns the index that an environment variable holds.
func IndexFromEnv(variable string) Index { return Index{Source: EnvironmentIndex, Variable: variable} }

// IndexFromHost returns the ordinal of the host's name. It suits the pods of a StatefulSet, whose
// names are web-0, web-1 and so on, and not those of a Deployment, whose names end in
// random letters that can also be digits.
func IndexFromHost() Index { return Index{Source: HostIndex} }

// Resolve looks the index up. ok is false without an error where there is none to look
// up.
func (x Index) Resolve() (index int, ok bool, err error) {
	return x.resolve(os.LookupEnv, os.Hostname)
}

func (x Index) resolve(env func(string) (string, bool), host func() (string, error)) (index int, ok bool, err error) {
	switch x.Source {
	case NoIndex:
		return 0, false, nil
	case GivenIndex:
		if x.Value < 0 || x.Value >= MaxClients {
			return 0, false, fmt.Errorf("subset: Index.Value is %d, want 0 to %d", x.Value, MaxClients-1)
		}
		return x.Value, true, nil
	case EnvironmentIndex:
		value, set := env(x.Variable)
		if !set {
			return 0, false, fmt.Errorf("subset: Index.Variable is %q, which is not set, want a variable that holds an index", x.Variable)
		}
		if i, ok := wholeNumber(value); ok {
			return i, true, nil
		}
		i, err := Ordinal(value)
		if err != nil {
			return 0, false, fmt.Errorf("subset: Index.Variable is %q: %w", x.Variable, err)
		}
		return i, true, nil
	case HostIndex:
		name, err := host()
		if err != nil {
			return 0, false, fmt.Errorf("subset: Index.Source is HostIndex: the host's name: %w", err)
		}
		i, err := Ordinal(name)
		return i, err == nil, err
	}
	return 0, false, fmt.Errorf("subset: Index.Source is %d, want NoIndex, GivenIndex, EnvironmentIndex or HostIndex", x.Source)
}

// Ordinal returns the number at the end of a name such as web-12 or web-12.web.default.svc:
// that of the first label, after its last hyphen, without leading zeros and below 2^24. Anything
// else is an error.
func Ordinal(name string) (int, error) {
	label, _, _ := strings.Cut(name, ".")
	if cut := strings.LastIndexByte(label, '-'); cut > 0 {
		if i, ok := wholeNumber(label[cut+1:]); ok {
			return i, nil
		}
	}
	return 0, fmt.Errorf("subset: the name is %q, want one that ends in an ordinal from 0 to %d, such as web-12", clip(name), MaxClients-1)
}

// wholeNumber reads digits alone: no sign, no leading zero, nothing around them.
func wholeNumber(text string) (int, bool) {
	if text == "" || len(text) > 8 || text[0] == '0' && text != "0" {
		return 0, false
	}
	for _, b := range []byte(text) {
		if b < '0' || b > '9' {
			return 0, false
		}
	}
	i, err := strconv.Atoi(text)
	return i, err == nil && i < MaxClients
}
