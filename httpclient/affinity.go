package httpclient

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/hash"
)

// affinity is where requests have their keys. It is immutable.
type affinity struct {
	own  func(*http.Request) (string, bool) // the Transport's Key; nil for none
	keys []evenkeel.Key                     // with headers as http.Header has them
}

// affinityOf returns where own and c, which is valid, say that keys are; nil if c's policy
// does not use them.
func affinityOf(own func(*http.Request) (string, bool), c evenkeel.Config) *affinity {
	if !c.UsesKey() {
		return nil
	}
	if len(c.Keys) == 0 {
		return &affinity{own, []evenkeel.Key{{Context: true}}}
	}
	a := &affinity{own, make([]evenkeel.Key, len(c.Keys))}
	for i, k := range c.Keys {
		k.Header = http.CanonicalHeaderKey(k.Header)
		a.keys[i] = k
	}
	return a
}

// hash returns the hash of the request's key; false if it has none.
func (a *affinity) hash(req *http.Request) (sum uint64, ok bool) {
	key := a.find(req)
	if key == "" {
		return 0, false
	}
	return hash.Sum(key), true
}

// find returns the first key that is not empty, or "".
func (a *affinity) find(req *http.Request) (key string) {
	if a.own != nil {
		if key, ok := a.own(req); ok && key != "" {
			return key
		}
	}
	for _, k := range a.keys {
		switch {
		case k.Header != "":
			key = headerOf(req, k.Header)
		case k.Cookie != "":
			key = cookieOf(req.Header["Cookie"], k.Cookie)
		case k.Query != "":
			key = parameterOf(req.URL.RawQuery, k.Query)
		case k.Path:
			key = pathOf(req.URL)
		case k.Context:
			key, _ = evenkeel.KeyFromContext(req.Context())
		}
		if key != "" {
			return key
		}
	}
	return ""
}

// headerOf returns the values of a header, joined. Host is not in the map.
func headerOf(req *http.Request, name string) string {
	if name != "Host" {
		return strings.Join(req.Header[name], ",")
	}
	if req.Host != "" {
		return req.Host
	}
	return req.URL.Host
}

// cookieOf returns the value of the first cookie with that name that is not empty, without
// its quotes. net/http has the same, for the cost of all cookies, but for values with bytes
// that it would not send: those are keys too.
func cookieOf(lines []string, name string) string {
	for _, line := range lines {
		for part := range strings.SplitSeq(line, ";") {
			n, v, _ := strings.Cut(strings.Trim(part, " \t"), "=")
			if strings.Trim(n, " \t") != name {
				continue
			}
			if len(v) > 1 && v[0] == '"' && v[len(v)-1] == '"' {
				v = v[1 : len(v)-1]
			}
			if v != "" {
				return v
			}
		}
	}
	return ""
}

// parameterOf returns the first value of a query's parameter, as url.ParseQuery has it but
// without the others. It allocates only for what is escaped.
func parameterOf(query, name string) string {
	for pair := range strings.SplitSeq(query, "&") {
		if strings.Contains(pair, ";") {
			continue
		}
		n, v, _ := strings.Cut(pair, "=")
		if n, err := url.QueryUnescape(n); err != nil || n != name {
			continue
		}
		if v, err := url.QueryUnescape(v); err == nil {
			return v
		}
	}
	return ""
}

// pathOf returns the path that a request line has, decoded.
func pathOf(u *url.URL) string {
	switch {
	case u.Opaque != "":
		return u.Opaque
	case u.Path == "":
		return "/"
	}
	return u.Path
}
