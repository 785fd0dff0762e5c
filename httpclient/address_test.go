package httpclient

import (
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel"
)

func TestBug14IPv6IsCutAtTheRightColonOrRefused(t *testing.T) {
	for _, c := range []struct{ addr, id string }{
		{"[fd00::1]:443", "[fd00::1]:443"},
		{"fd00::1", "[fd00::1]:80"},
		{"fe80::1%eth0", "[fe80::1%eth0]:80"},
		{"[fe80::1%eth0]:8080", "[fe80::1%eth0]:8080"},
		{"[::1]", "[::1]:80"},
		{"FD00:0:0::0001", "[fd00::1]:80"},
		{"::1:abcd", "[::1:abcd]:80"},
		{"2001:db8::8080", "[2001:db8::8080]:80"},
		{"[::ffff:10.0.0.1]:81", "10.0.0.1:81"},
		{"10.0.0.1", "10.0.0.1:80"},
		{"10.0.0.1:8080", "10.0.0.1:8080"},
		{"Orders.Internal:8080", "orders.internal:8080"},
		{"orders_v2.internal.", "orders_v2.internal.:80"},
	} {
		got, err := locate(addrs(c.addr), 80)
		if err != nil || got[0].String() != c.id {
			t.Errorf("%q is %v, %v, want %s", c.addr, got, err, c.id)
		}
	}
}

func TestTextThatIsNoAddressIsRefusedWithWhatIsWanted(t *testing.T) {
	for _, c := range []struct{ addr, want string }{
		{"", "want a host"},
		{"::1:8080", "want brackets"},
		{"2001:db8::1:80", "want brackets"},
		{"[10.0.0.1]:80", "want an IP address"},
		{"[10.0.0.1]", "want an IPv6 address"},
		{"[::1", "want an IP address"},
		{"[::1]:0", "want a port of 1 to 65535"},
		{"10.0.0.1:0", "want a port of 1 to 65535"},
		{"10.0.0.1:65536", "want a port of 1 to 65535"},
		{"svc:http", "want a port of 1 to 65535"},
		{"svc:", "want a port of 1 to 65535"},
		{":80", "want an IP address, or a name"},
		{"a:b:80", "at most one port"},
		{"300.1.2.3:80", "want an IP address, or a name"},
		{"10.0.0", "want an IP address, or a name"},
		{"10.0.0.0x1", "want an IP address, or a name"},
		{"two words:80", "want an IP address, or a name"},
		{"a..b:80", "want an IP address, or a name"},
		{"http://svc:80", "at most one port"},
		{"svc/path", "want an IP address, or a name"},
		{"bücher.example", "want an IP address, or a name"},
		{strings.Repeat("a", 64), "want an IP address, or a name"},
	} {
		_, err := locate(addrs(c.addr), 80)
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), fmt.Sprintf("httpclient: address 0: Addr is %q", c.addr)) {
			t.Errorf("%q: %v, want %q", c.addr, err, c.want)
		}
	}
}

func TestListIsRefusedWithAllItsProblems(t *testing.T) {
	list := Static{
		{Addr: "10.0.0.1:80"},
		{Addr: "::1:8080"},
		{Addr: "[::ffff:10.0.0.1]:80"},
		{Addr: "10.0.0.2:80", Weight: evenkeel.WeightOf(-1)},
		{Addr: "10.0.0.3:80", Weight: evenkeel.WeightOf(math.NaN())},
		{Addr: "10.0.0.4:80", Weight: evenkeel.WeightOf(1e300)},
		{Addr: "10.0.0.5:80", Weight: evenkeel.WeightOf(0)},
	}
	err := list.Validate()
	for _, want := range []string{
		`address 1: Addr is "::1:8080", want brackets`,
		`address 2: Addr is "[::ffff:10.0.0.1]:80", the same as address 0, want each once`,
		"address 3: Weight is -1, want 0 or",
		"address 4: Weight is NaN, want 0 or",
		"address 5: Weight is 1e+300, want 0 or",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate: %v\nwant %q in it", err, want)
		}
	}
	if n := strings.Count(err.Error(), "httpclient:"); n != 5 {
		t.Errorf("%d problems, want 5:\n%v", n, err)
	}
	if err := (Static{}).Validate(); err == nil || !strings.Contains(err.Error(), "want at least 1") {
		t.Errorf("empty list: %v", err)
	}
}

func TestProblemsOfALongListAreBounded(t *testing.T) {
	err := make(Static, 1000).Validate()
	if n := strings.Count(err.Error(), "\n"); n != maxProblems {
		t.Errorf("%d lines, want %d", n+1, maxProblems+1)
	}
	if !strings.Contains(err.Error(), "and 984 more problems") {
		t.Errorf("%v", err)
	}
}

func TestURLsOfOneServiceAreOneTarget(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"http://svc.test", "http://svc.test:80"},
		{"http://SVC.Test:80/a?b", "http://svc.test:80"},
		{"http://user:pw@svc.test:0080/", "http://svc.test:80"},
		{"https://svc.test/", "https://svc.test:443"},
		{"http://[::1]:8080/", "http://[::1]:8080"},
		{"http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]:80"},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		got, err := targetOf(u)
		if err != nil || got.String() != c.want || got.validate() != nil {
			t.Errorf("%s: %v, %v, want %s", c.url, got, err, c.want)
		}
	}
}

func FuzzAddressIsCanonicalOrRefused(f *testing.F) {
	for _, s := range []string{"", "::1:8080", "[fe80::1%a]:1", "a:1", "[::ffff:1.2.3.4]:80", "1.2.3", "A.b.", "[", "x:[]:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := parseAddr(s)
		if err != nil {
			return
		}
		if l.port == 0 {
			l.port = 80
		}
		again, err := parseAddr(l.String())
		if err != nil || again != l {
			t.Errorf("%q is %v, whose text is read as %v, %v", s, l, again, err)
		}
	})
}
