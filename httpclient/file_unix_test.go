//go:build unix

package httpclient

import (
	"path/filepath"
	"syscall"
	"testing"
)

// Opening a pipe that nobody writes to would wait for ever.
func TestFileThatIsAPipeIsRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no pipes here: ", err)
	}
	refusesFile(t, pipe, "it is no regular file but p")
}
