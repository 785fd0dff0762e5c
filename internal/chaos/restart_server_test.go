//go:build unix

package chaos

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// restartedEnv makes a server one that is deployed anew; it holds its deployment.
const restartedEnv = "EVENKEEL_CHAOS_RESTARTED"

// deployment is how a server that is deployed anew is run.
type deployment struct {
	// TLS has it speak HTTP/1.1 and HTTP/2 over TLS, and without TLS otherwise.
	TLS bool
	// Ledger is a file to which the number of each POST is added that was acted on. It outlasts
	// the process, however that ends.
	Ledger string
	// Notice has its checks fail from SIGTERM on. It takes leave of its clients at the next one.
	Notice bool
	// Bare answers are headers alone: one with a body may have begun when the server is killed, and is then lost.
	Bare bool
	// Idle is how long it keeps connections without requests; 0 is for ever.
	Idle time.Duration
}

// servedBy is the header that says which process answers.
const servedBy = "Served-By"

// answer is the body of answers.
const answer = "served"

// longestWork is how long a request takes at most; half as long on average.
const longestWork = 4 * time.Millisecond

// deployed is such a server at work.
type deployed struct {
	ledger  *os.File
	name    string
	bare    bool
	leaving atomic.Bool
}

// ServeHTTP implements http.Handler.
func (d *deployed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == checkPath {
		if d.leaving.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return
	}
	number, err := io.ReadAll(r.Body)
	if err != nil {
		return // it broke off, and is not acted on
	}
	if r.Method == http.MethodPost {
		// One write for each line, so that lines stay whole whoever else writes.
		if _, err := d.ledger.Write(append(number, '\n')); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
	}
	_ = pass(context.Background(), rand.N(longestWork))
	w.Header().Set(servedBy, d.name)
	if !d.bare {
		_, _ = io.WriteString(w, answer)
	}
}

// beRestarted serves until it gets SIGTERM, and then does what a well-made server does: it says so where it is
// checked, takes leave of its clients, ends what is under way, and exits. It ends at once with standard input. It
// returns the exit code.
func beRestarted(ports, settings string) int {
	var d deployment
	var addr string
	err := json.Unmarshal([]byte(settings), &d)
	if err == nil {
		_, err = fmt.Sscan(ports, &addr)
	}
	if err == nil {
		err = d.serve(addr)
	}
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	return 0
}

func (d deployment) serve(addr string) error {
	ledger, err := os.OpenFile(d.Ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer ledger.Close()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	h := &deployed{ledger: ledger, name: strconv.Itoa(os.Getpid()), bare: d.Bare}
	s := &http.Server{Handler: h, IdleTimeout: d.Idle, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	if d.TLS {
		s.Protocols.SetHTTP2(true)
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate()}}
		go func() { _ = s.ServeTLS(l, "", "") }()
	} else {
		s.Protocols.SetUnencryptedHTTP2(true)
		go func() { _ = s.Serve(l) }()
	}
	fmt.Println("ok")
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	<-told
	h.leaving.Store(true)
	if d.Notice {
		<-told
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.Shutdown(ctx)
}

// certificate is that of httptest, for tlsHost. All processes of the test binary have it.
func certificate() tls.Certificate {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return s.TLS.Certificates[0]
}

// tlsHost is what the certificate is for.
const tlsHost = "example.com"
