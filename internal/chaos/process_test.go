//go:build unix

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a server may take to start, or to do as it is told, on a busy machine.
const patience = 20 * time.Second

// server is a process that serves.
type server struct {
	http, grpc string // its addresses, which outlast the process
	env        string // "" or a variable that makes it another kind of server
	cmd        *exec.Cmd
	orders     io.WriteCloser
	output     *os.File
	answers    *bufio.Reader
	complaints bytes.Buffer
}

// startFleet starts n servers, which end with the test.
func startFleet(t *testing.T, n int) []*server {
	t.Helper()
	fleet := make([]*server, n)
	for i := range fleet {
		fleet[i] = &server{}
		t.Cleanup(fleet[i].kill)
		if err := fleet[i].startAnywhere(); err != nil {
			t.Fatal(err)
		}
	}
	return fleet
}

// startAnywhere starts the process at addresses that are free.
func (s *server) startAnywhere() (err error) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		s.http, s.grpc = randomAddr(), randomAddr()
		if err = s.start(); err == nil {
			return nil
		}
	}
	return err
}

// alive are the servers whose processes are not known to be gone.
var alive sync.Map

// randomAddr is an address with a port that systems do not give to those who ask for any, so that
// nobody gets it while its server is dead.
func randomAddr() string { return fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000)) }

// start starts the process at its addresses, and waits until it serves.
func (s *server) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	output, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer write.Close()
	s.output, s.answers = output, bufio.NewReader(output)
	s.complaints.Reset()
	s.cmd = exec.Command(self)
	s.cmd.Env = append(os.Environ(), serverEnv+"="+s.http+" "+s.grpc, "GOMAXPROCS=1")
	if s.env != "" {
		s.cmd.Env = append(s.cmd.Env, s.env)
	}
	s.cmd.Stdout, s.cmd.Stderr = write, &s.complaints
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if s.orders, err = s.cmd.StdinPipe(); err == nil {
		alive.Store(s, true)
		err = s.cmd.Start()
	}
	if err == nil {
		_, err = s.answer()
	}
	if err != nil {
		s.kill()
		return fmt.Errorf("server: %w\n%s", err, &s.complaints)
	}
	return nil
}

// answer waits for the process to say that the last order is carried out, and what else it says.
func (s *server) answer() (string, error) {
	_ = s.output.SetReadDeadline(time.Now().Add(patience))
	line, err := s.answers.ReadString('\n')
	if err != nil {
		return "", err
	}
	said, ok := strings.CutPrefix(line, "ok")
	if !ok {
		return "", errors.New(strings.TrimSpace(line))
	}
	return strings.TrimSpace(said), nil
}

// tell makes the server behave as an order says, and returns what it answers.
func (s *server) tell(t *testing.T, order string) (answer string) {
	t.Helper()
	_, err := fmt.Fprintln(s.orders, order)
	if err == nil {
		answer, err = s.answer()
	}
	if err != nil {
		t.Fatalf("server, told to %s: %v\n%s", order, err, &s.complaints)
	}
	return answer
}

// held is how many requests and streams the server holds.
func (s *server) held(t *testing.T) (requests, streams int) {
	t.Helper()
	if _, err := fmt.Sscan(s.tell(t, "held"), &requests, &streams); err != nil {
		t.Fatal(err)
	}
	return requests, streams
}

// spent is what the server's two ports have done.
func (s *server) spent(t *testing.T) (http, grpc spent) {
	t.Helper()
	if _, err := fmt.Sscan(s.tell(t, "spent"), &http.done, &http.took, &grpc.done, &grpc.took); err != nil {
		t.Fatal(err)
	}
	return http, grpc
}

// leave makes the server tell its clients to leave, give them grace, and end by itself.
func (s *server) leave(t *testing.T) {
	t.Helper()
	s.tell(t, "leave")
	_ = s.orders.Close()
	s.ended(t)
}

// ended waits for a process that is about to end by itself.
func (s *server) ended(t *testing.T) {
	t.Helper()
	late := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("a server that left: %v\n%s", err, &s.complaints)
	}
	s.kill()
}

// signal sends the process a signal.
func (s *server) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(s.cmd.Process.Pid, sig); err != nil {
		t.Fatal(err)
	}
}

// kill ends the process and all that it has started, and waits until it is gone.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	if s.cmd.Process != nil && s.cmd.ProcessState == nil {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		_ = s.cmd.Wait()
	}
	alive.Delete(s)
	if s.orders != nil {
		_ = s.orders.Close()
	}
	_ = s.output.Close()
	s.cmd = nil
}

// restart starts the process anew at its old addresses.
func (s *server) restart(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := s.start()
		if err == nil {
			return
		}
		if pass(ctx, 10*time.Millisecond) != nil {
			t.Fatal(err)
		}
	}
}
