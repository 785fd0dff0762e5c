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
	"syscall"
	"testing"
	"time"
)

// patience is how long a server may take to start, or to do as it is told, on a busy machine.
const patience = 20 * time.Second

// server is a process that serves.
type server struct {
	http, grpc string // its addresses, which outlast the process
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
		s := &server{}
		t.Cleanup(s.kill)
		for deadline := time.Now().Add(patience); ; {
			s.http, s.grpc = randomAddr(), randomAddr()
			err := s.start()
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
		fleet[i] = s
	}
	return fleet
}

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
	s.cmd.Stdout, s.cmd.Stderr = write, &s.complaints
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if s.orders, err = s.cmd.StdinPipe(); err == nil {
		err = s.cmd.Start()
	}
	if err == nil {
		err = s.answer()
	}
	if err != nil {
		s.kill()
		return fmt.Errorf("server: %w\n%s", err, &s.complaints)
	}
	return nil
}

// answer waits for the process to say that the last order is carried out.
func (s *server) answer() error {
	_ = s.output.SetReadDeadline(time.Now().Add(patience))
	line, err := s.answers.ReadString('\n')
	if err != nil {
		return err
	}
	if line = strings.TrimSpace(line); line != "ok" {
		return errors.New(line)
	}
	return nil
}

// tell makes the server behave as an order says.
func (s *server) tell(t *testing.T, order string) {
	t.Helper()
	_, err := fmt.Fprintln(s.orders, order)
	if err == nil {
		err = s.answer()
	}
	if err != nil {
		t.Fatalf("server, told to %s: %v\n%s", order, err, &s.complaints)
	}
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
	if s.cmd.Process != nil {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		_ = s.cmd.Wait()
	}
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
