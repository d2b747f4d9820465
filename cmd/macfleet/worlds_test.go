package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/macfleet/macfleet/internal/maintest"
)

// worlds holds prepared simulated worlds, each made once. A world's state is only files, so
// tests start from a copy.
type worlds struct {
	mu   sync.Mutex
	dir  string
	made map[string]*madeWorld
}

type madeWorld struct {
	once sync.Once
	dir  string
	err  error
}

var prepared worlds

// copy puts a copy of a world at a new path. make creates the world for a key in a folder.
func (w *worlds) copy(key, to string, make func(dir string) error) error {
	if _, err := os.Stat(to); err == nil {
		return fmt.Errorf("there is a world in %s already", to)
	}
	m, err := w.of(key)
	if err != nil {
		return err
	}
	m.once.Do(func() { m.err = make(m.dir) })
	if m.err != nil {
		return m.err
	}
	if out, err := exec.Command("cp", "-a", m.dir, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy a world: %w: %s", err, out)
	}
	return nil
}

func (w *worlds) of(key string) (*madeWorld, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		dir, err := os.MkdirTemp("", "macfleet-worlds-")
		if err != nil {
			return nil, err
		}
		w.dir, w.made = dir, map[string]*madeWorld{}
	}
	m := w.made[key]
	if m == nil {
		m = &madeWorld{dir: filepath.Join(w.dir, fmt.Sprint(len(w.made)))}
		w.made[key] = m
	}
	return m, nil
}

// tested runs the tests, then removes their shared folder.
type tested struct{ *testing.M }

func (m tested) Run() int {
	defer maintest.InMemory()()
	defer func() {
		if prepared.dir != "" {
			_ = os.RemoveAll(prepared.dir) // it is in the folder for temporary files
		}
	}()
	return m.M.Run()
}

// applied FLAGS... brings the script's new world to the state after an approved apply. The
// files of a copy have new times, so a world with Nodes cannot be copied: its kubelets would
// be older than their program.
func applied(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: applied FLAGS...")
	}
	files, err := filepath.Glob(filepath.Join(ts.MkAbs(ts.Getenv("MACFLEET_DIRECTORY")), "*.fleet.hcl"))
	ts.Check(err)
	key := sha256.New()
	fmt.Fprintf(key, "%q %q %q", args, ts.Getenv("MACFLEET_ENVIRONMENT"), ts.Getenv("MACFLEET_VAR_runners"))
	for _, name := range files {
		fmt.Fprintf(key, "%s=%q", filepath.Base(name), ts.ReadFile(name))
	}
	to := ts.Getenv("MACFLEET_SANDBOX")
	ts.Check(prepared.copy(fmt.Sprintf("%x", key.Sum(nil)), to, func(world string) error {
		defer ts.Setenv("MACFLEET_SANDBOX", to)
		ts.Setenv("MACFLEET_SANDBOX", world)
		done(ts, append([]string{"apply", "--auto-approve"}, args...)...)
		return nil
	}))
}
