package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/plan"
)

// TestPinsOutliveLooking: the first Ctrl-C ends what looks. What runs is finished
// after it, and pins its host; the look that proves it reads the pins.
func TestPinsOutliveLooking(t *testing.T) {
	t.Parallel()
	dir, world := filepath.Join("..", "..", "examples", "nodes"), t.TempDir()
	var said bytes.Buffer
	nobody := streams{strings.NewReader(""), &said, &said}
	if code := run(t.Context(), []string{"-C", dir, "--sandbox=" + world, "init", "cluster", "--auto-approve"}, nobody); code != exitDone {
		t.Fatalf("init cluster ended with %d: %s", code, said.String())
	}
	looking, interrupt := context.WithCancel(t.Context())
	a := &app{streams: nobody, output: output{to: &said}, stop: looking,
		options: options{dir: dir, sandbox: world, sandboxHosts: 1, parallelism: 1, starts: 1}}
	s, err := a.open(looking, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	interrupt()
	if err := s.engine.Pins.Update(func(all []plan.Pin) []plan.Pin { return all }); err != nil {
		t.Errorf("write the pins: %v", err)
	}
	if _, err := s.engine.Pins.All(); err != nil {
		t.Errorf("read the pins: %v", err)
	}
}
