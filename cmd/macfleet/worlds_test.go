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

// worlds keeps simulated worlds as commands leave a new one, each made once: a world's
// state is files alone, so who needs one only to start from has a copy.
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

// copy puts a world of its own at a path, where there is none yet. make makes one for all
// who have the same key, in a folder that it is given.
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

// tested runs the tests, and then removes what they had in common.
type tested struct{ *testing.M }

func (m tested) Run() int {
	defer maintest.InMemory()()
	defer func() {
		if prepared.dir != "" {
			_ = os.RemoveAll(prepared.dir) // it lies in the folder for temporary files
		}
	}()
	return m.M.Run()
}

// applied FLAGS... brings the script's world, which is new, to where an approved apply
// leaves it. The files of a copy are new to whoever asks when they last changed, so a
// world with Nodes cannot be copied: its kubelets would be older than their program.
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
		return ts.Exec("macfleet", append([]string{"apply", "--auto-approve"}, args...)...)
	}))
}
