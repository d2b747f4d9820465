package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/sandbox"
)

func (a *app) sandboxRunCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "run -- COMMAND [ARGUMENT...]",
		Short: "Run a command, such as kubectl, against the simulated cluster",
		Long: "run serves the simulated world while COMMAND runs. KUBECONFIG names a file that leads to its cluster and is\n" +
			"removed afterwards; MACFLEET_SANDBOX names the world. It ends with COMMAND's exit code.\n\n" +
			"  macfleet sandbox run -- kubectl get nodes",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.inWorld(func(w *sandbox.World) error { return a.runInWorld(c.Context(), w, args) })
		},
	}
}

// runInWorld runs a command while the world is served. The token lies in the
// file alone: an environment can be read by others.
func (a *app) runInWorld(ctx context.Context, w *sandbox.World, args []string) (err error) {
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
	world, err := filepath.Abs(a.sandboxDir())
	if err != nil {
		return fmt.Errorf("run %s in the sandbox: %w", args[0], err)
	}
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "MACFLEET_SANDBOX="+world)
	command.Stdin, command.Stdout, command.Stderr = a.in, a.out, a.err
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
