//go:build !linux

package app

import (
	"os"
	"testing"
)

// unprivileged does something as a user to whom the modes of files apply.
func unprivileged(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("root may write everything, and only Linux gives one thread another user")
	}
	do()
}
