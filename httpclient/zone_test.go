package httpclient

import (
	"strings"
	"testing"
)

func TestZoneOfAURLKeepsItsCase(t *testing.T) {
	for url, want := range map[string]string{
		"http://[fe80::1%25Eth0]/": "fe80::1%Eth0",
		"http://[FE80::A%25Eth0]/": "fe80::a%Eth0",
	} {
		got, err := targetOf(parse(t, url))
		if err != nil || got.Host != want || got.validate() != nil {
			t.Errorf("%s: %q, %v, want %q", url, got.Host, err, want)
		}
	}
}

func TestZoneThatIsAMistypedPortIsRefused(t *testing.T) {
	for addr, want := range map[string]string{
		"fe80::1%eth0:65536":    "want a zone without",
		"fe80::1%eth0:http":     "want a zone without",
		"[fe80::1%a]b]:80":      "want a zone without",
		"[fe80::1%a[b]:80":      "want a zone without",
		"[fe80::1%a%b]:80":      "want a zone without",
		"[fe80::1%a b]":         "want a zone without",
		"[fe80::1%a\tb]:80":     "want a zone without",
		"[fe80::1%a\x00]":       "want a zone without",
		"[fe80::1%25eth0]:80":   "want a zone as in %eth0",
		"fe80::1%25eth0":        "want a zone as in %eth0",
		"[fe80::1%\u00a0]:8080": "want a zone without",
	} {
		if _, err := locate(addrs(addr), 80); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", addr, err, want)
		}
	}
	for _, addr := range []string{"fe80::1%25", "[fe80::1%251]:80", "fe80::1%eth0.25", "fe80::1%en-0_1"} {
		if _, err := locate(addrs(addr), 80); err != nil {
			t.Error(err)
		}
	}
	for _, host := range []string{"fe80::1%a:b", "fe80::1%25eth0"} {
		err := Target{Scheme: "http", Host: host, Port: "80"}.validate()
		if err == nil || !strings.Contains(err.Error(), "URL.Host is") {
			t.Errorf("%q: %v", host, err)
		}
	}
}

func TestNameWithADotAtItsEndIsAnother(t *testing.T) {
	got, err := locate(addrs("a", "a."), 80)
	if err != nil || got[0] == got[1] {
		t.Errorf("%v, %v, want two", got, err)
	}
}

func TestErrorsQuoteABoundedText(t *testing.T) {
	long := strings.Repeat("é", 5000)
	name := strings.Repeat("a.", 60) + "b"
	_, noAddress := locate(addrs(long), 80)
	_, twice := locate(addrs(name, name), 80)
	u := parse(t, svc)
	u.Scheme = long
	_, scheme := targetOf(u)
	for what, err := range map[string]error{
		"address": noAddress, "twice": twice, "scheme": scheme,
		"host": Target{Scheme: "http", Host: long, Port: "80"}.validate(),
		"port": Target{Scheme: "http", Host: "a", Port: strings.Repeat("1", 5000)}.validate(),
	} {
		if err == nil || len([]rune(err.Error())) > 300 || !strings.Contains(err.Error(), `..."`) {
			t.Errorf("%s: %.400v", what, err)
		}
	}
	if s := clip(long); s != long[:2*maxQuoted]+"..." {
		t.Errorf("clipped to %q", s)
	}
	if s := clip(long[:2*maxQuoted]); s != long[:2*maxQuoted] {
		t.Errorf("clipped to %q", s)
	}
}

func TestResolverThatIsANilDNSIsRefused(t *testing.T) {
	tr := &Transport{Resolver: (*DNS)(nil)}
	defer tr.Close()
	_, err := tr.RoundTrip(request(t, "GET", svc, nil))
	if err == nil || !strings.Contains(err.Error(), "httpclient: Resolver is a nil *DNS") {
		t.Errorf("%v", err)
	}
}
