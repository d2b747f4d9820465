package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/macfleet/macfleet/internal/sandbox/cloud"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// rememberSecond records the host's own registration, and a second host with a runner.
func rememberSecond(ctx context.Context, v *victim) error {
	if err := rememberEntry(ctx, v); err != nil {
		return err
	}
	all, err := v.world.cloud.Servers()
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b cloud.Server) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	for _, server := range all {
		machine, err := v.world.macs.get(server)
		if err != nil {
			return err
		}
		state, err := machine.Runner()
		if server.ID == v.server.ID || errors.Is(err, mac.ErrNoRunner) || err == nil && state.Target == "" {
			continue
		}
		if err != nil {
			return err
		}
		v.record.Server, v.record.Settings["second root"] = server.ID, state.Root
		own, err := v.machine()
		if err != nil {
			return err
		}
		for _, name := range runnerFiles() {
			data, err := own.ReadFile(v.record.Settings["root"] + "/" + name)
			if err != nil {
				return err
			}
			v.record.Settings["own "+name] = string(data)
		}
		return nil
	}
	return errors.New("no other host has a runner; fix: apply a fleet with two hosts with github_runner first")
}

// second returns the second host's Mac, or nil if its server is gone.
func (v *victim) second() (*mac.Machine, error) {
	server, found, err := v.world.cloud.Server(v.record.Server)
	if err != nil || !found {
		return nil, err
	}
	return v.world.macs.get(server)
}

// copyRegistration gives the host the second host's registration, and restarts its runner.
func copyRegistration(ctx context.Context, v *victim) error {
	second, err := v.second()
	if err != nil || second == nil {
		return err
	}
	return v.register(ctx, func(name string) ([]byte, error) {
		return second.ReadFile(v.record.Settings["second root"] + "/" + name)
	})
}

// register writes the files of the host's registration, and restarts its runner.
func (v *victim) register(ctx context.Context, content func(name string) ([]byte, error)) error {
	own, err := v.machine()
	if err != nil {
		return err
	}
	for _, name := range runnerFiles() {
		data, err := content(name)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if name == ".credentials_rsaparams" {
			mode = 0o600
		}
		if err := own.WriteFile(v.record.Settings["root"]+"/"+name, data, 501, 20, mode); err != nil {
			return err
		}
	}
	job, ok, err := own.Job(v.record.Settings["job"])
	if err != nil || !ok {
		return err
	}
	if job.PID != 0 {
		err = own.RestartJob(v.record.Settings["job"])
	}
	return settled(ctx, own, err)
}

func registrationCopied(_ context.Context, v *victim) (bool, error) {
	own, err := v.machine()
	if err != nil {
		return false, err
	}
	second, err := v.second()
	if err != nil || second == nil {
		return false, err
	}
	mine, err := own.ReadFile(v.record.Settings["root"] + "/.runner")
	if err != nil {
		return false, nil
	}
	theirs, err := second.ReadFile(v.record.Settings["second root"] + "/.runner")
	return err == nil && bytes.Equal(mine, theirs), nil
}

// restoreOwn restores the host's registration, unless it was registered again since.
func restoreOwn(ctx context.Context, v *victim) error {
	copied, err := registrationCopied(ctx, v)
	if err != nil || !copied {
		return err
	}
	if err := v.register(ctx, func(name string) ([]byte, error) { return []byte(v.record.Settings["own "+name]), nil }); err != nil {
		return err
	}
	return onRunner(startRunner)(ctx, v)
}
