package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/macfleet/macfleet/internal/sandbox"
)

// SandboxRun runs a command against the simulated cluster, and ends with its exit code.
func SandboxRun(ctx context.Context, env *Env, args []string) error {
	return env.inWorld(func(w *sandbox.World) error { return env.runInWorld(ctx, w, args) })
}

// runInWorld runs a command while the world is served. The token lies in the
// file alone: an environment can be read by others.
func (env *Env) runInWorld(ctx context.Context, w *sandbox.World, args []string) (err error) {
	folder, err := os.MkdirTemp("", "macfleet-sandbox-")
	if err != nil {
		return fmt.Errorf("make a kubeconfig for %s: %w; set TMPDIR to a folder that can be written", args[0], err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	kubeconfig := filepath.Join(folder, "kubeconfig")
	content, err := w.Kubeconfig()
	if err != nil {
		return err
	}
	if err := os.WriteFile(kubeconfig, content, 0o600); err != nil {
		return fmt.Errorf("make a kubeconfig for %s: %w; set TMPDIR to a folder that can be written", args[0], err)
	}
	world, err := filepath.Abs(env.sandboxDir())
	if err != nil {
		return fmt.Errorf("run %s in the sandbox: %w", args[0], err)
	}
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "MACFLEET_SANDBOX="+world)
	command.Stdin, command.Stdout, command.Stderr = env.In, env.Out, env.Err
	err = command.Run()
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		if err != nil {
			err = fmt.Errorf("run %s in the sandbox: %w", args[0], err)
		}
		return err
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exit(128 + int(status.Signal()))
	}
	return exit(ended.ExitCode())
}
