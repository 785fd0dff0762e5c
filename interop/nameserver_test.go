package interop

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"
)

// nameServer is a DNS server on loopback, over UDP and TCP, whose records the test sets. Its TTLs are 0.
type nameServer struct {
	addr string

	mu      sync.Mutex
	answers map[string]answer // by name, in lower case and with a dot at the end
}

// answer is what is said of a name. The zero answer is that there are no records.
type answer struct {
	a    []string // addresses
	srv  []dns.SRV
	txt  string
	code int // an error
	// silent gives no answer at all.
	silent bool
	// noAAAA fails questions for IPv6 addresses, as some old servers do.
	noAAAA bool
	// truncated says over UDP that the answer has to be asked for over TCP.
	truncated bool
}

func startNameServer(t *testing.T) *nameServer {
	t.Helper()
	n := &nameServer{answers: map[string]answer{}}
	packets, listener := samePort(t)
	n.addr = packets.LocalAddr().String()
	for _, s := range []*dns.Server{{PacketConn: packets, Handler: n}, {Listener: listener, Handler: n}} {
		started := make(chan struct{})
		s.NotifyStartedFunc = func() { close(started) }
		ended := make(chan error, 1)
		go func() { ended <- s.ActivateAndServe() }()
		select {
		case <-started:
		case err := <-ended:
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = s.Shutdown()
			<-ended
		})
	}
	return n
}

// samePort listens on one port of UDP and TCP.
func samePort(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	var failure error
	for range 20 { // TCP's may be taken
		packets, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("tcp", packets.LocalAddr().String())
		if err == nil {
			return packets, listener
		}
		_ = packets.Close()
		failure = err
	}
	t.Fatal(failure)
	return nil, nil
}

// set makes a the answer to questions about name.
func (n *nameServer) set(name string, a answer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers[dns.Fqdn(name)] = a
}

// ServeDNS implements dns.Handler.
func (n *nameServer) ServeDNS(w dns.ResponseWriter, asked *dns.Msg) {
	q := asked.Question[0]
	n.mu.Lock()
	a, known := n.answers[strings.ToLower(q.Name)]
	n.mu.Unlock()
	if a.silent {
		return
	}
	reply := new(dns.Msg).SetReply(asked)
	reply.Authoritative = true
	head := dns.RR_Header{Name: q.Name, Rrtype: q.Qtype, Class: dns.ClassINET}
	_, overUDP := w.LocalAddr().(*net.UDPAddr)
	switch {
	case !known:
		reply.Rcode = dns.RcodeNameError
	case a.code != 0:
		reply.Rcode = a.code
	case q.Qtype == dns.TypeAAAA && a.noAAAA:
		reply.Rcode = dns.RcodeServerFailure
	case a.truncated && overUDP:
		reply.Truncated = true
	case q.Qtype == dns.TypeA:
		for _, ip := range a.a {
			reply.Answer = append(reply.Answer, &dns.A{Hdr: head, A: net.ParseIP(ip)})
		}
	case q.Qtype == dns.TypeSRV:
		for _, r := range a.srv {
			r.Hdr, r.Target = head, dns.Fqdn(r.Target)
			reply.Answer = append(reply.Answer, &r)
		}
	case q.Qtype == dns.TypeTXT && a.txt != "":
		record := &dns.TXT{Hdr: head}
		for piece := range slices.Chunk([]byte(a.txt), 255) { // the most that a string of a record holds
			record.Txt = append(record.Txt, string(piece))
		}
		reply.Answer = append(reply.Answer, record)
	}
	_ = w.WriteMsg(reply)
}

// resolver asks this server.
func (n *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, n.addr)
	}}
}

// webServer is an HTTP server at an address of its own on loopback.
type webServer struct {
	ip, port string
	calls    atomic.Int64
}

// startWebServers starts one at each of the addresses, all on the same port.
func startWebServers(t *testing.T, ips ...string) []*webServer {
	t.Helper()
	listeners := onePort(t, ips...)
	list := make([]*webServer, len(ips))
	for i, lis := range listeners {
		w := &webServer{ip: ips[i]}
		_, w.port, _ = net.SplitHostPort(lis.Addr().String())
		s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { w.calls.Add(1) })}
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(lis) }()
		t.Cleanup(func() {
			_ = s.Close()
			<-ended
		})
		list[i] = w
	}
	return list
}

// onePort listens on the same port of each address, as a service's instances do.
func onePort(t *testing.T, ips ...string) []net.Listener {
	t.Helper()
	var failure error
	for range 20 { // another's may be taken
		port := "0"
		var list []net.Listener
		for _, ip := range ips {
			var lis net.Listener
			if lis, failure = net.Listen("tcp", net.JoinHostPort(ip, port)); failure != nil {
				break
			}
			list = append(list, lis)
			_, port, _ = net.SplitHostPort(lis.Addr().String())
		}
		if failure == nil {
			return list
		}
		for _, lis := range list {
			_ = lis.Close()
		}
	}
	t.Fatal(failure)
	return nil
}
