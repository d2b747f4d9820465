package sandbox_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// TestRestart restarts a Mac over SSH: the connection breaks, the address is unreachable for a while,
// and then the same machine has a new start time.
func TestRestart(t *testing.T) {
	t.Parallel()
	w, _ := newWorld(t, 1)
	h, key := hosts(t, w)[0], signer(t, w)
	machine, err := mac.Open(filepath.Dir(h.Root))
	must(t, err)
	must(t, machine.SetSwitch("boot-duration", "30s"))
	before, first, err := exec(t.Context(), w, key, h.Address, "sysctl -n kern.boottime")
	must(t, err)
	if out, _, err := exec(t.Context(), w, key, h.Address, "sudo -n shutdown -r now; echo still here"); err == nil {
		t.Errorf("the connection outlived the machine: %q", out)
	}
	if _, err := w.DialContext(t.Context(), "tcp", h.Address+":22"); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("a connection while it starts: %v", err)
	}
	must(t, machine.Advance(31*time.Second))
	after, second, err := exec(t.Context(), w, key, h.Address, "sysctl -n kern.boottime")
	if err != nil || after == before || first != second {
		t.Errorf("started %q with the key %s, before %q with %s; %v", after, second, before, first, err)
	}
}
