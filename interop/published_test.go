package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// gRPC's own programs, as they are published. Nothing beneath the module cache may be overlaid, so that a
// program of ours is made of the very files there, and one more.

// theImport is that file: all that a program needs for its service config to name the policy.
const theImport = `package main

import _ "github.com/evenkeel/evenkeel/grpcbalancer"
`

// linked leaves out what debuggers need, which is half of the time that linking takes.
const linked = "-ldflags=-s -w"

// goTool runs the go command and returns what it prints.
func goTool(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var said, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, &said, &complaints)
	}
	return strings.TrimSpace(said.String())
}

// buildPublished builds a program and returns where it is.
func buildPublished(t *testing.T, program string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), filepath.Base(program))
	goTool(t, "build", linked, "-o", binary, program)
	return binary
}

// buildWithImport builds a program of its files and theImport. If edit is not nil, it is applied to their text.
func buildWithImport(t *testing.T, program string, edit func(string) string) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	const virtual = "published" // a directory that is not there
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(here, virtual, name)] = path
	}
	list := strings.Split(goTool(t, "list", "-f", `{{.Dir}}{{range .GoFiles}}{{"\n"}}{{.}}{{end}}`, program), "\n")
	for _, name := range list[1:] {
		source := filepath.Join(list[0], name)
		overlay.Replace[filepath.Join(here, virtual, name)] = source
		if edit != nil {
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			write(name, edit(string(text)))
		}
	}
	write("evenkeel_import.go", theImport)
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "program")
	goTool(t, "build", linked, "-buildvcs=false", "-overlay", file, "-o", binary, "./"+virtual)
	return binary
}

// startPublished starts a server whose flag of that name is its port, and returns the port.
func startPublished(t *testing.T, binary, portFlag string, args ...string) string {
	t.Helper()
	for range 5 { // the port may be taken in between
		if port, ok := tryPublished(t, binary, portFlag, args...); ok {
			return port
		}
	}
	t.Fatalf("%s does not start", binary)
	return ""
}

func tryPublished(t *testing.T, binary, portFlag string, args ...string) (port string, ok bool) {
	t.Helper()
	lis, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	port = strconv.Itoa(lis.Addr().(*net.TCPAddr).Port)
	_ = lis.Close()
	ended := startProgram(t, binary, append(args, "-"+portFlag+"="+port)...)
	return port, listens(t, ended, port)
}

// startProgram starts it, ends it with the test, and returns where its end is told.
func startProgram(t *testing.T, binary string, args ...string) (ended <-chan error) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end, gone := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(gone)
		end <- cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-gone
		if t.Failed() {
			t.Logf("%s: %s", filepath.Base(binary), last(said.String()))
		}
	})
	return end
}

// listens waits for a server on the port, unless the program has ended.
func listens(t *testing.T, ended <-chan error, port string) (ok bool) {
	t.Helper()
	eventually(t, "the server listens", func() bool {
		if len(ended) != 0 {
			return true
		}
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			return false
		}
		_ = conn.Close()
		ok = true
		return true
	})
	return ok && len(ended) == 0
}

// run runs a client with gRPC's log on, until it ends, and returns all that it prints.
func run(t *testing.T, binary string, args ...string) (said string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "GRPC_GO_LOG_SEVERITY_LEVEL=info", "GRPC_GO_LOG_VERBOSITY_LEVEL=0")
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("not within %v: %w", patience, err)
	}
	return string(out), err
}

var switches = regexp.MustCompile(`Channel switches to new LB policy "([^"]*)"`)

// policies returns the names of those that the channels of a client that has printed this had, in their order.
func policies(said string) (names []string) {
	for _, m := range switches.FindAllStringSubmatch(said, -1) {
		names = append(names, m[1])
	}
	return names
}

// balancedBy checks that the client's channels had the policy of that name, and no other.
func balancedBy(t *testing.T, name, said string) {
	t.Helper()
	if had := slices.Compact(policies(said)); !slices.Equal(had, []string{name}) {
		t.Errorf("the client's channels had the policies %q, want %q: %s", had, name, last(said))
	}
}

// last is the end of what a program has printed.
func last(said string) string {
	const most = 4000
	if len(said) > most {
		return "... " + said[len(said)-most:]
	}
	return said
}
