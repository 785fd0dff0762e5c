//go:build !unix

package chaos

import "testing"

func TestLongServersInTrouble(t *testing.T) {
	t.Skip("servers are stopped and continued by signals, which this system does not have")
}
