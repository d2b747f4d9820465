package sandbox_test

import (
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/macfleet/macfleet/internal/sandbox"
)

// BenchmarkFreshWorld creates a world of 500 hosts and runs one command on each over a separate
// connection.
func BenchmarkFreshWorld(b *testing.B) {
	for b.Loop() {
		w, err := sandbox.Open(filepath.Join(b.TempDir(), "sandbox"), seed(500))
		must(b, err)
		execAll(b, w)
		must(b, w.Close())
	}
}

// BenchmarkKnownWorld does the same in an existing world.
func BenchmarkKnownWorld(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "sandbox")
	execAll(b, open(b, dir, seed(500)))
	for b.Loop() {
		w, err := sandbox.Open(dir, seed(500))
		must(b, err)
		execAll(b, w)
		must(b, w.Close())
	}
}

// BenchmarkOpen creates a world of 500 hosts and contacts none.
func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		w, err := sandbox.Open(filepath.Join(b.TempDir(), "sandbox"), seed(500))
		must(b, err)
		must(b, w.Close())
	}
}

func execAll(b *testing.B, w *sandbox.World) {
	b.Helper()
	key := signer(b, w)
	var group errgroup.Group
	group.SetLimit(32 * runtime.NumCPU())
	for i := range 500 {
		group.Go(func() error {
			_, _, err := exec(b.Context(), w, key, sandbox.AddressForTest(i), "true")
			return err
		})
	}
	must(b, group.Wait())
}
