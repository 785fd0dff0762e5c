package probe

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/internal/health"
)

// grpcProber asks grpc.health.v1.Health for the status of one service.
type grpcProber struct {
	dialer    *dialer
	transport *http.Transport
	scheme    string
	host      string
	message   []byte // framed
	warn      func(string)
	warned    sync.Once
}

func newGRPCProber(c evenkeel.HealthConfig, o ProberOptions, d *dialer, host string) *grpcProber {
	p := &grpcProber{dialer: d, scheme: "http", host: host, message: healthRequest(c.Service), warn: o.OnWarning}
	protocols := new(http.Protocols)
	if o.TLS {
		p.scheme = "https"
		protocols.SetHTTP2(true)
	} else {
		protocols.SetUnencryptedHTTP2(true)
	}
	config := tlsConfig(o.TLSConfig, c, host)
	p.transport = d.transport(protocols, config)
	return p
}

// Probe makes one check.
func (p *grpcProber) Probe(ctx context.Context, addr string) (health.Result, string) {
	req := (&http.Request{
		Method: http.MethodPost,
		URL:    &url.URL{Scheme: p.scheme, Host: addr, Path: "/grpc.health.v1.Health/Check"},
		Host:   p.host,
		Header: http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "User-Agent": {userAgent}},
		Body:   io.NopCloser(bytes.NewReader(p.message)), ContentLength: int64(len(p.message)),
		GetBody: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(p.message)), nil },
	}).WithContext(calling(ctx, addr))
	if deadline, ok := ctx.Deadline(); ok {
		req.Header.Set("Grpc-Timeout", strconv.FormatInt(max(time.Until(deadline).Milliseconds(), 1), 10)+"m")
	}
	resp, err := p.transport.RoundTrip(req)
	if err != nil {
		return health.Failed, err.Error()
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/grpc") {
		return health.Failed, fmt.Sprintf("HTTP %d with Content-Type %q, want gRPC", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return health.Failed, "the answer breaks off: " + err.Error()
	}
	return p.verdict(resp, body)
}

// Codes of gRPC that are no failure of the call.
const (
	codeOK            = "0"
	codeNotFound      = "5"
	codeUnimplemented = "12"
)

// verdict says what an answer means that was read to its end.
func (p *grpcProber) verdict(resp *http.Response, body []byte) (health.Result, string) {
	from := resp.Trailer
	if from.Get("Grpc-Status") == "" { // a call that failed at once has it in its headers
		from = resp.Header
	}
	switch code := from.Get("Grpc-Status"); code {
	case codeOK:
	case codeNotFound: // the service is not known, which the answer of a Watch would say in its message
		return health.Unexpected, servingNames[serviceUnknown]
	case codeUnimplemented:
		p.warned.Do(func() {
			if p.warn != nil {
				p.warn("health checks: the server does not have grpc.health.v1.Health, so its endpoints count as healthy")
			}
		})
		return health.Passed, "the server has no health service"
	case "":
		return health.Failed, "the answer has no grpc-status"
	default:
		return health.Failed, "grpc-status " + code + ": " + from.Get("Grpc-Message")
	}
	status, err := parseHealth(body)
	if err != nil {
		return health.Failed, err.Error()
	}
	if status == serving {
		return health.Passed, status.String()
	}
	return health.Unexpected, status.String()
}

// Left closes the connections to an address.
func (p *grpcProber) Left(addr string) { p.dialer.left(addr) }

// Close closes all connections.
func (p *grpcProber) Close() { closeAll(p.transport, p.dialer) }
