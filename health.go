package evenkeel

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/evenkeel/evenkeel/internal/health"
)

// HealthProtocol says what a health check is.
type HealthProtocol uint8

const (
	// CheckTCP opens a connection and closes it. That it can be opened is enough.
	CheckTCP HealthProtocol = iota
	// CheckHTTP sends a GET without TLS, whatever the target's scheme.
	CheckHTTP
	// CheckHTTPS sends a GET over TLS.
	CheckHTTPS
	// CheckGRPC asks grpc.health.v1.Health, without TLS or with it as the requests are sent. A
	// server that does not have this service is healthy.
	CheckGRPC

	protocols = iota
)

var protocolNames = [protocols]string{"tcp", "http", "https", "grpc"}

// String returns the protocol's name.
func (p HealthProtocol) String() string {
	if int(p) < protocols {
		return protocolNames[p]
	}
	return "invalid"
}

// http reports whether the check is a GET.
func (p HealthProtocol) http() bool { return p == CheckHTTP || p == CheckHTTPS }

// HeaderField is one header of a request.
type HeaderField struct {
	// Name is the header's name, in any case.
	Name string
	// Value is its value, which may be empty.
	Value string
}

// StatusRange is a range of HTTP statuses, both ends included.
type StatusRange struct {
	// From is the least status: 100 to 599.
	From int
	// To is the greatest. 0 means From, so that the range is that one status.
	To int
}

// Has reports whether the status is in the range.
func (s StatusRange) Has(status int) bool { return s.From <= status && status <= max(s.From, s.To) }

// NoJitter is the value of [HealthConfig].Jitter for intervals that are all alike.
const NoJitter = health.None

// HealthConfig says how endpoints are checked beside the requests that they get, and what follows.
// The zero HealthConfig is the documented default: every 5 s a connection is opened; three checks in a
// row that fail take an endpoint out, two that pass bring it back, and its first one decides alone.
//
// An endpoint that fails its checks gets nothing, unless so few are left that verdicts are not
// believed (package outlier's Panic). What is checked should be the endpoint alone: a check that
// depends on what all share, a database, takes all of them out at once.
//
// Each client checks each endpoint that it uses: with many clients and few endpoints, prefer longer
// intervals, or subsets.
type HealthConfig struct {
	// Protocol is what is sent.
	Protocol HealthProtocol
	// Port is where to. 0 means the endpoint's own; at most 65535.
	Port int
	// Path is what is asked for, by CheckHTTP and CheckHTTPS: it begins with '/' and may have a
	// query. "" means "/".
	Path string
	// Host is the Host header, :authority, and with TLS the name that the certificate has to be for; not
	// of CheckTCP. "" means the target's.
	Host string
	// Headers are sent with each check by CheckHTTP and CheckHTTPS; at most 64.
	Headers []HeaderField
	// Expect are the statuses that pass, of CheckHTTP and CheckHTTPS. Others, redirects among
	// them, which are not followed, do not. nil means 200 alone; at most 64 ranges.
	Expect []StatusRange
	// Service is the name that CheckGRPC asks for. "" means the server as a whole.
	Service string
	// SkipVerify accepts any certificate, of CheckHTTPS alone.
	SkipVerify bool

	// Interval is the time from the start of a check to the start of the next. 0 means 5 s; otherwise
	// 10 ms to 1 h.
	Interval time.Duration
	// Timeout is how long a check may take. 0 means 1 s, or Interval if that is shorter; otherwise
	// at most Interval.
	Timeout time.Duration
	// Jitter spreads each interval by this share of it, to both sides. 0 means 0.1, [NoJitter], -1, none; at
	// most 1.
	Jitter float64
	// Rise is how many checks in a row must pass to bring an endpoint back. 0 means 2; at most 1000.
	Rise int
	// Fall is how many checks in a row must fail to take an endpoint out. 0 means 3; at most 1000.
	Fall int
	// UnexpectedAtOnce makes one answer that is not an expected one take the endpoint out: it is a
	// clear no, where a check without an answer may be bad luck.
	UnexpectedAtOnce bool
	// NoTraffic is the interval while there are no requests. 0 means 60 s, or Interval if that is
	// longer; otherwise Interval to 1 h.
	NoTraffic time.Duration
	// UseUnchecked says that a new endpoint gets requests before its first check has ended. By default
	// it is [Unchecked] until then, as long as another one is known to be healthy.
	UseUnchecked bool
}

// Validate reports every problem of the configuration, joined; nil if there is none.
func (c HealthConfig) Validate() error {
	var problems []error
	add := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("evenkeel: HealthConfig."+format, args...))
	}
	if c.Protocol >= protocols {
		add("Protocol is %d, want 0 to %d", c.Protocol, protocols-1)
	}
	if c.Port < 0 || c.Port > math.MaxUint16 {
		add("Port is %d, want 0 to %d", c.Port, math.MaxUint16)
	}
	c.validateScope(add)
	c.validateTexts(add)
	c.validateLists(add)
	return errors.Join(append(problems, c.timing().ValidateAs("evenkeel: HealthConfig", "NoJitter"))...)
}

// validateScope reports fields that the protocol has no use for.
func (c HealthConfig) validateScope(add func(string, ...any)) {
	if c.Protocol >= protocols {
		return
	}
	foreign := func(set bool, field, of string) {
		if set {
			add("%s is set, want it with %s alone, not with %v", field, of, c.Protocol)
		}
	}
	http := c.Protocol.http()
	foreign(c.Path != "" && !http, "Path", "CheckHTTP and CheckHTTPS")
	foreign(c.Host != "" && c.Protocol == CheckTCP, "Host", "CheckHTTP, CheckHTTPS and CheckGRPC")
	foreign(len(c.Headers) > 0 && !http, "Headers", "CheckHTTP and CheckHTTPS")
	foreign(len(c.Expect) > 0 && !http, "Expect", "CheckHTTP and CheckHTTPS")
	foreign(c.Service != "" && c.Protocol != CheckGRPC, "Service", "CheckGRPC")
	foreign(c.SkipVerify && c.Protocol != CheckHTTPS, "SkipVerify", "CheckHTTPS")
}

// Bounds of what is sent with each check.
const (
	maxHealthText  = 2048
	maxHealthList  = 64
	maxHealthValue = 4096
)

func (c HealthConfig) validateTexts(add func(string, ...any)) {
	if n := len(c.Path); n > maxHealthText {
		add("Path has %d bytes, want at most %d", n, maxHealthText)
	} else if c.Path != "" && !isRequestPath(c.Path) {
		add("Path is %q, want printable ASCII that begins with '/', other characters escaped as %%20, without '#'", c.Path)
	}
	if n := len(c.Host); n > maxKeyName {
		add("Host has %d bytes, want at most %d", n, maxKeyName)
	} else if strings.ContainsFunc(c.Host, notInHost) {
		add("Host is %q, want a host with or without a port", c.Host)
	}
	if n := len(c.Service); n > maxHealthText {
		add("Service has %d bytes, want at most %d", n, maxHealthText)
	} else if !utf8.ValidString(c.Service) {
		add("Service is %q, want UTF-8", c.Service)
	}
}

func (c HealthConfig) validateLists(add func(string, ...any)) {
	if n := len(c.Headers); n > maxHealthList {
		add("Headers has %d headers, want at most %d", n, maxHealthList)
	} else {
		for i, h := range c.Headers {
			h.validate(fmt.Sprintf("Headers[%d]", i), add)
		}
	}
	if n := len(c.Expect); n > maxHealthList {
		add("Expect has %d ranges, want at most %d", n, maxHealthList)
		return
	}
	for i, s := range c.Expect {
		if s.From < 100 || s.From > 599 {
			add("Expect[%d].From is %d, want 100 to 599", i, s.From)
		}
		if s.To != 0 && (s.To < s.From || s.To > 599) {
			add("Expect[%d].To is %d, want 0 or From, which is %d, to 599", i, s.To, s.From)
		}
	}
}

// framing are the headers that are made of the request itself.
var framing = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Trailer", "TE"}

func (h HeaderField) validate(at string, add func(string, ...any)) {
	switch {
	case h.Name == "" || len(h.Name) > maxKeyName || !isToken(h.Name):
		add("%s.Name is %q, want 1 to %d letters, digits and any of !#$%%&'*+-.^_`|~", at, h.Name, maxKeyName)
	case slices.ContainsFunc(framing, func(f string) bool { return strings.EqualFold(f, h.Name) }):
		add("%s.Name is %q, want none of %s", at, h.Name, strings.Join(framing, ", "))
	}
	if n := len(h.Value); n > maxHealthValue {
		add("%s.Value has %d bytes, want at most %d", at, n, maxHealthValue)
	} else if strings.ContainsFunc(h.Value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		add("%s.Value is %q, want no control characters", at, h.Value)
	}
}

// isRequestPath reports whether s can be sent as it is (RFC 9112, 3.2.1).
func isRequestPath(s string) bool {
	const hex = "0123456789abcdefABCDEF"
	for i, b := range []byte(s) {
		switch {
		case b <= ' ' || b > '~' || b == '#':
			return false
		case b == '%' && (i+2 >= len(s) || strings.IndexByte(hex, s[i+1]) < 0 || strings.IndexByte(hex, s[i+2]) < 0):
			return false
		}
	}
	return s[0] == '/'
}

func notInHost(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`/\@?#"<>`, r) }

func (c HealthConfig) timing() health.Config {
	return health.Config{Interval: c.Interval, Timeout: c.Timeout, Jitter: c.Jitter, Rise: c.Rise, Fall: c.Fall,
		UnexpectedAtOnce: c.UnexpectedAtOnce, NoTraffic: c.NoTraffic, UseUnchecked: c.UseUnchecked}
}

func sameHealth(a, b *HealthConfig) bool {
	return a == b || a != nil && b != nil && reflect.DeepEqual(a.owned(), b.owned())
}

// owned returns a copy that shares no memory with c.
func (c HealthConfig) owned() HealthConfig {
	c.Headers = append([]HeaderField(nil), c.Headers...)
	c.Expect = append([]StatusRange(nil), c.Expect...)
	return c
}
