package httpclient

import (
	"context"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/hash"
	"github.com/evenkeel/evenkeel/picker"
)

// byKey is a policy of a user's own that sends a key to the member of that number, and what
// has none to the last.
type byKey struct{ picker.Random }

func (byKey) UsesKey() bool { return true }

// Build implements picker.Policy.
func (p byKey) Build(*picker.Members, picker.Picker) picker.Picker { return p }

// Pick implements picker.Picker.
func (byKey) Pick(s *picker.Snapshot, r picker.Request, _ int64) int {
	if !r.HasKey {
		return s.At(s.Len() - 1)
	}
	return s.At(int(r.Key % uint64(s.Len()-1)))
}

// affine is a config of byKey.
func affine(keys ...evenkeel.Key) evenkeel.Config {
	return evenkeel.Config{Policy: byKey{}, Keys: keys}
}

// keyOf returns the key that req has for this config.
func keyOf(req *http.Request, keys ...evenkeel.Key) string {
	return affinityOf(nil, affine(keys...)).find(req)
}

func TestKeyIsTheFirstThatIsNotEmpty(t *testing.T) {
	header, cookie := evenkeel.Key{Header: "x-user"}, evenkeel.Key{Cookie: "session"}
	query, path, ctx := evenkeel.Key{Query: "u"}, evenkeel.Key{Path: true}, evenkeel.Key{Context: true}
	all := []evenkeel.Key{header, cookie, query, ctx, path}
	for _, c := range []struct {
		name string
		url  string
		set  func(*http.Request)
		keys []evenkeel.Key
		want string
	}{
		{"nothing", "/", nil, all[:4], ""},
		{"no keys named", "/", withKey("ctx"), nil, "ctx"},
		{"no keys named, none there", "/", nil, nil, ""},
		{"header", "/?u=q", withHeader("X-User", "alice"), all, "alice"},
		{"an empty header is none", "/?u=q", withHeader("X-User", ""), all, "q"},
		{"header values joined", "/", withHeader("X-User", "a", "b", "a"), all, "a,b,a"},
		{"header values as they are", "/", withHeader("X-User", " a , b "), all, " a , b "},
		{"cookie", "/", withHeader("Cookie", "a=1; session=s1; b=2"), all, "s1"},
		{"parameter", "/p?a=b&u=q%20r&u=2", nil, all, "q r"},
		{"an empty parameter is none", "/p?u=&u=2", nil, all, "/p"},
		{"path", "/a%2Fb/%C3%BC", nil, all, "/a/b/ü"},
		{"the order counts", "/p?u=q", withHeader("X-User", "alice"), []evenkeel.Key{path, header}, "/p"},
		{"context", "/", withKey("ctx"), all, "ctx"},
		{"an empty key of a context is none", "/", withKey(""), all, "/"},
		{"no path is the root", "", nil, all, "/"},
		{"host", "/", nil, []evenkeel.Key{{Header: "host"}}, "svc.test"},
		{"host of its own", "/", func(r *http.Request) { r.Host = "other.test" }, []evenkeel.Key{{Header: "Host"}}, "other.test"},
		{"opaque", "/", func(r *http.Request) { r.URL.Opaque, r.URL.Path = "//svc.test/x", "" }, all, "//svc.test/x"},
	} {
		req := request(t, http.MethodGet, "http://svc.test"+c.url, nil)
		if c.set != nil {
			c.set(req)
		}
		if got := keyOf(req, c.keys...); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func withHeader(name string, values ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header[name] = values }
}

func withKey(key string) func(*http.Request) {
	return func(r *http.Request) { *r = *r.WithContext(evenkeel.WithKey(r.Context(), key)) }
}

// What a caller sends on from others may hold anything. A key is a key, however strange and
// long; nothing else is made of it.
func TestHostileKeysAreKeysLikeOthers(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 1<<16)
	for _, value := range []string{"\x00", "\r\nX-Evil: 1", "\xff\xfe", "../../etc", "%zz", ";=\"", long, long + "x"} {
		a := affinityOf(nil, affine(evenkeel.Key{Header: "x-user"}))
		req := request(t, http.MethodGet, "http://svc.test/", nil)
		withHeader("X-User", value)(req)
		if sum, ok := a.hash(req); !ok || sum != hash.Sum(value) {
			t.Errorf("%.20q: %d, %v, want its hash", value, sum, ok)
		}
	}
	for cookie, want := range map[string]string{
		"": "", ";": "", "=": "", ";;;=;session": "", "session": "", "session=": "", `session=""`: "", `session="`: `"`,
		"session=; session=2": "2", "session=1; session=2": "1", "Session=1": "", "xsession=1": "", "session =1": "1", "session= 1": " 1",
		"\tsession=\"a b\" ": "a b", "session=a=b": "a=b", "session=\x00": "\x00",
	} {
		if got := cookieOf([]string{cookie}, "session"); got != want {
			t.Errorf("cookie %q: %q, want %q", cookie, got, want)
		}
	}
	many := strings.Repeat("&;=%", 1<<16) + "&u=1"
	if got := parameterOf(many, "u"); got != "1" {
		t.Errorf("a parameter behind many: %q", got)
	}
}

func TestKeysCostNothingToFind(t *testing.T) {
	req := request(t, http.MethodGet, "http://svc.test/p?a=1&u=q", nil)
	withHeader("X-User", "alice")(req)
	withHeader("Cookie", `a=1; session="s1"`)(req)
	withKey("ctx")(req)
	for _, k := range []evenkeel.Key{{Header: "x-user"}, {Header: "host"}, {Cookie: "session"}, {Query: "u"}, {Path: true}, {Context: true}} {
		tr := tenStubs(t, byKey{})
		tr2 := stubbed(t, &Transport{Resolver: tr.Resolver, Config: affine(evenkeel.Key{Header: "absent"}, k)}, stubAnswer)
		roundTrip(t, tr2, req)
		stub := leafFunc(func(req *http.Request) (*http.Response, error) { return stubAnswer("", req) })
		floor := testing.AllocsPerRun(500, func() { roundTrip(t, stub, req) })
		if n := testing.AllocsPerRun(500, func() { roundTrip(t, tr2, req) }) - floor; n != 1 {
			t.Errorf("%+v: %v allocations more than the stub, want 1, the box of the body", k, n)
		}
	}
}

func TestTransportAsksItsOwnKeyFirst(t *testing.T) {
	asked, on := 0, ""
	tr := stubbed(t, &Transport{
		Resolver: Static(addrs("0.test:80", "1.test:80", "2.test:80", "3.test:80", "4.test:80")),
		Config:   affine(evenkeel.Key{Header: "x-user"}),
		Key: func(r *http.Request) (string, bool) {
			asked++
			return r.Header.Get("X-Tenant"), r.Header.Get("X-Ignore") == ""
		},
	}, func(addr string, req *http.Request) (*http.Response, error) {
		on = addr
		return stubAnswer(addr, req)
	})
	for _, c := range []struct{ tenant, ignore, want string }{
		{"acme", "", "acme"}, {"", "", "alice"}, {"acme", "yes", "alice"},
	} {
		req := request(t, http.MethodGet, "http://svc.test/", nil)
		req.Header = http.Header{"X-User": {"alice"}, "X-Tenant": {c.tenant}, "X-Ignore": {c.ignore}}
		roundTrip(t, tr, req)
		if want := fmt.Sprintf("%d.test:80", hash.Sum(c.want)%4); on != want {
			t.Errorf("%+v: on %s, want %s", c, on, want)
		}
	}
	if asked != 3 || hash.Sum("acme")%4 == hash.Sum("alice")%4 {
		t.Errorf("asked %d times, want 3, with keys that differ", asked)
	}
}

// A policy without keys does not pay for them.
func TestKeysAreNotLookedForWithoutNeed(t *testing.T) {
	tr := stubbed(t, &Transport{
		Resolver: Static{{Addr: "10.0.0.1:80"}},
		Config:   evenkeel.Config{Keys: []evenkeel.Key{{Path: true}}},
		Key: func(*http.Request) (string, bool) {
			t.Error("Key was called under a policy that uses none")
			return "", false
		},
	}, stubAnswer)
	roundTrip(t, tr, request(t, http.MethodGet, "http://svc.test/", nil))
}

func TestKeysThatCannotBeUsedFailTheFirstRequest(t *testing.T) {
	tr := stubbed(t, &Transport{Config: affine(evenkeel.Key{Header: "x user"}, evenkeel.Key{}), MaxTargets: -1}, stubAnswer)
	_, err := tr.RoundTrip(request(t, http.MethodGet, "http://svc.test/", nil))
	for _, want := range []string{"Keys[0].Header", "Keys[1] is empty", "MaxTargets is -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %q in it", err, want)
		}
	}
}

// Over real connections: equal keys meet, whatever else differs, on the connection that a
// policy chose; cookies of a Jar count, and redirects keep their key.
func TestEqualKeysGoToOneServer(t *testing.T) {
	servers := serve(t, 5, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/login" {
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "s-" + r.URL.Query().Get("u")})
			http.Redirect(w, r, "/home", http.StatusSeeOther)
			return
		}
		_, _ = w.Write([]byte(r.Context().Value(http.LocalAddrContextKey).(interface{ String() string }).String()))
	}, plain)
	for _, u := range []string{"alice", "bob", "carol", "dave"} {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		c := client(t, &Transport{Resolver: static(servers), Config: affine(evenkeel.Key{Cookie: "session"})})
		c.Jar = jar
		_, first := fetch(t, c, "http://svc.test/login?u="+u)
		if want := servers[hash.Sum("s-"+u)%4].addr; first != want {
			t.Errorf("%s: after the login on %s, want %s", u, first, want)
		}
		for range 5 {
			if _, again := fetch(t, c, "http://svc.test/home"); again != first {
				t.Errorf("%s: on %s, before that on %s", u, again, first)
			}
		}
	}
	c := client(t, &Transport{Resolver: static(servers), Config: affine()})
	for _, key := range []string{"a", "b", strings.Repeat("k", 1<<20)} {
		req := request(t, http.MethodGet, "http://svc.test/", nil)
		resp, err := c.Do(req.WithContext(evenkeel.WithKey(context.Background(), key)))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if n := servers[hash.Sum(key)%4].requests.Swap(0); n == 0 {
			t.Errorf("%.10q: not where its hash says", key)
		}
	}
}

// Requests without a key, and with an empty one, are the fallback's.
func TestRequestsWithoutAKeyGoByTheFallback(t *testing.T) {
	got := map[string]int{}
	tr := stubbed(t, &Transport{
		Resolver: Static(addrs("10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80", "10.0.0.4:80")),
		Config: evenkeel.Config{
			Policy: picker.Hash{Fallback: picker.RoundRobin{}},
			Keys:   []evenkeel.Key{{Header: "x-user"}, {Cookie: "session"}, {Query: "u"}, {Context: true}},
		},
	}, func(addr string, req *http.Request) (*http.Response, error) {
		got[addr]++
		return stubAnswer(addr, req)
	})
	for i := range 40 {
		req := request(t, http.MethodGet, "http://svc.test/?u", nil)
		if i%2 == 0 {
			req.Header = http.Header{"X-User": {""}, "Cookie": {"session="}}
		}
		roundTrip(t, tr, req)
	}
	for addr, n := range got {
		if n != 10 {
			t.Errorf("%s got %d of 40 requests, want 10", addr, n)
		}
	}
	clear(got)
	for range 40 {
		req := request(t, http.MethodGet, "http://svc.test/?u", nil)
		withHeader("Cookie", "session=s1")(req)
		roundTrip(t, tr, req)
	}
	if len(got) != 1 {
		t.Errorf("one key: %v, want one endpoint", got)
	}
}

func FuzzKeyParsersAgreeWithNetHTTP(f *testing.F) {
	f.Add("a b=1", "a b") // no name of a cookie
	f.Add("a=b,c!#$%&'()*+-./:<>?@[]^_`{|}~; A=2", "a")
	for _, seed := range []string{"", "a=1", "a=1; b=2", "a=1&a=2", "a=%41&b", "%61=1", "a+b=1", "a;b=1&a=2", `a="1"; a=2`, "a=%zz&a=2", "=1", "a==;"} {
		f.Add(seed, "a")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		values, _ := url.ParseQuery(text)
		if got, want := parameterOf(text, name), values.Get(name); got != want {
			t.Errorf("parameter %q of %q: %q, want %q", name, text, got, want)
		}
		req := http.Request{Header: http.Header{"Cookie": {text}}}
		want := ""
		for _, c := range req.CookiesNamed(name) {
			if want == "" {
				want = c.Value
			}
		}
		if affine(evenkeel.Key{Cookie: name}).Validate() != nil || !plainCookies(text) {
			return
		}
		if got := cookieOf([]string{text}, name); got != want {
			t.Errorf("cookie %q of %q: %q, want %q", name, text, got, want)
		}
	})
}

// plainCookies reports whether a header has no bytes for which net/http leaves cookies out:
// here those are keys.
func plainCookies(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' })
}

// BenchmarkKey is a key found and hashed, which a request costs more under a policy with keys.
func BenchmarkKey(b *testing.B) {
	req := request(b, http.MethodGet, "http://svc.test/objects/1234?a=1&b=2&u=user-0123456789", nil)
	withHeader("X-User", "user-0123456789")(req)
	withHeader("Cookie", "a=0123456789abcdef; b=0123456789abcdef; session=user-0123456789")(req)
	withKey("user-0123456789")(req)
	for _, c := range []struct {
		name string
		key  evenkeel.Key
	}{
		{"context", evenkeel.Key{Context: true}}, {"header", evenkeel.Key{Header: "x-user"}},
		{"cookie", evenkeel.Key{Cookie: "session"}}, {"query", evenkeel.Key{Query: "u"}}, {"path", evenkeel.Key{Path: true}},
	} {
		b.Run("from="+c.name, func(b *testing.B) {
			a := affinityOf(nil, affine(c.key))
			b.ReportAllocs()
			for b.Loop() {
				a.hash(req)
			}
		})
	}
}
