package interop

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/evenkeel/evenkeel/httpclient"
)

// nginx is a real one in front of an upstream of the test's.
type nginx struct {
	addr string
	cert *x509.Certificate
	proc *os.Process
	log  string
}

// nginxProgram returns where it is. Without it the test is skipped, which EVENKEEL_NGINX=required, set where it has
// to be there, makes a failure.
func nginxProgram(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("nginx")
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/nginx"); err == nil {
			return path
		}
		if os.Getenv("EVENKEEL_NGINX") == "required" {
			t.Fatal(err)
		}
		fmt.Fprintln(os.Stderr, "NOTE: no nginx on this machine, "+t.Name()+" is skipped")
		t.Skip(err)
	}
	return path
}

const nginxConfig = `
daemon off;
worker_processes 2;
pid %[1]s/pid;
error_log %[1]s/error.log notice;
events { worker_connections 512; }
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	ssl_certificate %[1]s/cert.pem;
	ssl_certificate_key %[1]s/key.pem;
	server {
		listen %[2]s %[3]s;
		%[4]s
		location / { proxy_pass http://%[5]s; proxy_set_header X-Connection $connection; }
	}
}
`

// startNginx starts one whose server listens in the way, with these lines, in front of the upstream.
func startNginx(t *testing.T, listen, lines, upstream string) *nginx {
	t.Helper()
	program := nginxProgram(t)
	dir := t.TempDir()
	lis := onePort(t, "127.0.0.1")[0]
	n := &nginx{addr: lis.Addr().String(), log: filepath.Join(dir, "error.log")}
	_ = lis.Close()
	n.cert = writeCertificate(t, dir)
	config := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, nginxConfig, dir, n.addr, listen, lines, upstream), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-e", n.log, "-p", dir, "-c", config)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n.proc = cmd.Process
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = n.proc.Signal(syscall.SIGTERM)
		<-ended
		if said, err := os.ReadFile(n.log); err == nil && t.Failed() {
			t.Logf("%s", said)
		}
	})
	eventually(t, "nginx listens", func() bool {
		if len(ended) != 0 {
			said, _ := os.ReadFile(n.log)
			t.Fatalf("nginx has ended: %s", said)
		}
		conn, err := net.Dial("tcp", n.addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return n
}

// reloads returns how often old workers were told to end, which they do when their requests have.
func (n *nginx) reloads(t *testing.T) int {
	t.Helper()
	said, err := os.ReadFile(n.log)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(said, []byte("gracefully shutting down"))
}

// writeCertificate makes cert.pem and key.pem in dir.
func writeCertificate(t *testing.T, dir string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"svc.test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(cert)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: cert},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return parsed
}

// upstream is what the nginxes of a test pass requests on to. It knows their connections.
type upstream struct {
	addr        string
	calls       atomic.Int64
	slow        atomic.Int64 // requests for /slow that are under way
	connections sync.Map     // by nginx's number
}

func startUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{}
	lis := onePort(t, "127.0.0.1")[0]
	u.addr = lis.Addr().String()
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.calls.Add(1)
		u.connections.Store(r.Header.Get("X-Connection"), true)
		if r.URL.Path != "/slow" {
			return
		}
		u.slow.Add(1)
		defer u.slow.Add(-1)
		lull := time.NewTimer(300 * time.Millisecond)
		defer lull.Stop()
		select {
		case <-lull.C:
		case <-r.Context().Done():
		}
	})}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(lis) }()
	t.Cleanup(func() {
		_ = s.Close()
		<-ended
	})
	return u
}

func (u *upstream) conns() (n int) {
	u.connections.Range(func(any, any) bool { n++; return true })
	return n
}

// over is a client of the nginxes.
func over(t *testing.T, fleet ...*nginx) *httpclient.Transport {
	t.Helper()
	var list httpclient.Static
	roots := x509.NewCertPool()
	for _, n := range fleet {
		roots.AddCert(n.cert)
		list = append(list, httpclient.Address{Addr: n.addr})
	}
	tr := &httpclient.Transport{
		Resolver: list,
		Base:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
	}
	t.Cleanup(tr.Close)
	return tr
}

// unharmed fails the test if an endpoint was ejected, or is thought to do badly: least is the success that it
// has at least.
func unharmed(t *testing.T, tr *httpclient.Transport, least float64) {
	t.Helper()
	for _, target := range tr.Snapshot() {
		for _, e := range target.Endpoints {
			if e.Success < least || !e.Available || e.Ejection.Epoch != 0 {
				t.Errorf("%s is blamed: success %v, %v", e.ID, e.Success, e.Reasons())
			}
		}
	}
}

// nginx closes connections that were idle for a moment, or have served enough requests, while the client's
// next request is already on its way. net/http sends such a request again by itself; over HTTP/2 not always, so
// that an endpoint may be blamed for some.
func TestNginxKeepAliveTimeoutsLoseNoRequest(t *testing.T) {
	u := startUpstream(t)
	for _, c := range []struct {
		listen, url, lines string
		success            float64
	}{
		{"", "http://svc.test/", "keepalive_timeout 1ms;", 1},
		{"", "http://svc.test/", "keepalive_requests 3;", 1},
		{"", "http://svc.test/", "keepalive_timeout 0;", 1},
		{"ssl http2", "https://svc.test/", "keepalive_timeout 1ms;", 0},
	} {
		tr := over(t, startNginx(t, c.listen, c.lines, u.addr), startNginx(t, c.listen, c.lines, u.addr))
		before := u.conns()
		load := keepCalling(t, fetching(tr, c.url))
		eventually(t, c.lines+" requests are answered, over many connections", func() bool {
			return load.calls.Load() > 600 && u.conns() > before+50
		})
		load.stop()
		load.check(t)
		unharmed(t, tr, c.success)
	}
}

// A reload says GOAWAY on each connection; requests that nginx has begun are answered, those that it has not
// are sent again. So does each connection's thirtieth request.
func TestNginxGoAwayLosesNoRequest(t *testing.T) {
	u := startUpstream(t)
	const lines = "keepalive_requests 30;"
	fleet := []*nginx{startNginx(t, "ssl http2", lines, u.addr), startNginx(t, "ssl http2", lines, u.addr)}
	tr := over(t, fleet...)
	load := keepCalling(t, fetching(tr, "https://svc.test/"))
	slow := keepCalling(t, fetching(tr, "https://svc.test/slow"))
	for range 4 {
		for _, n := range fleet {
			eventually(t, "requests are under way", func() bool { return u.slow.Load() > 2 })
			calls, reloads := load.calls.Load(), n.reloads(t)
			if err := n.proc.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			eventually(t, "new workers run, and requests are answered", func() bool {
				return n.reloads(t) > reloads && load.calls.Load() > calls+100
			})
		}
	}
	load.stop()
	slow.stop()
	load.check(t)
	slow.check(t)
	unharmed(t, tr, 0)
}
