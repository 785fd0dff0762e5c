//go:build unix

package chaos

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// parentEnv makes a process of the test binary start three servers, stop one, and wait for its end.
const parentEnv = "EVENKEEL_CHAOS_PARENT"

// beParent says the servers' addresses.
func beParent() int {
	for i, s := range []*server{{}, {}, {env: restartedEnv + `={"Ledger": "` + os.DevNull + `"}`}} {
		err := s.startAnywhere()
		if stopped := i == 1; err == nil && stopped {
			err = stop(s.cmd.Process.Pid)
		}
		if err != nil {
			fmt.Println("error:", err)
			return 1
		}
		fmt.Println(s.http)
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
	return 0
}

// stop stops a child and waits until it stands still: the system tells the members of a group that loses its
// parent only if they do.
func stop(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		switch _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); {
		case err == syscall.EINTR:
		case err != nil || status.Stopped():
			return err
		}
	}
}

// A test run that is killed itself, or runs out of time, cannot clean up.
func TestServersEndWithAProcessThatIsKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), parentEnv+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var addrs []string
	for lines := bufio.NewScanner(out); len(addrs) < 3 && lines.Scan(); {
		addrs = append(addrs, strings.TrimSpace(lines.Text()))
	}
	accepts := func(addr string) bool {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	}
	if len(addrs) < 3 || !accepts(addrs[0]) || !accepts(addrs[1]) || !accepts(addrs[2]) {
		t.Errorf("servers are %q, want three that accept connections", addrs)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for _, addr := range addrs {
		// A server that is stopped accepts connections until it is gone.
		waitUntil(t, patience, addr+" is gone", func() bool { return !accepts(addr) })
	}
}
