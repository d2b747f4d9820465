package app

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/hosts/sshconfig"
	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/overssh"
	"github.com/macfleet/macfleet/internal/secret"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// client makes the client of hosts: from the configuration's ssh block and, in
// the real world, from the person's own ssh configuration and agent.
func (s *session) client(ctx context.Context) (*hosts.Client, error) {
	o := hosts.Options{User: s.config.SSH.User, Via: s.config.SSH.Via, Deadlines: deadlines(s.config.SSH.Timeouts), Starts: s.env.Starts, Progress: func(p hosts.Progress) { overssh.Sent(s.engine, p) }, Log: s.env.logger}
	if err := s.fleetKey(ctx, &o); err != nil {
		return nil, err
	}
	if s.world != nil {
		o.Dial = s.world.DialContext
		o.Lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, nil }
		return hosts.New(o), nil
	}
	config, err := s.env.readSSHConfig()
	if err != nil {
		return nil, err
	}
	o.Config, o.Agent = config.Lookup, os.Getenv("SSH_AUTH_SOCK")
	return hosts.New(o), nil
}

func deadlines(t fleet.Timeouts) hosts.Deadlines {
	return hosts.Deadlines{Dial: t.Dial, Handshake: t.Handshake, Question: t.Question, Change: t.Change, Exchange: t.Exchange, Silence: t.Silence, Undo: t.Undo}
}

// fleetKey resolves the configuration's private key. Without one the person's
// own keys count, except in a sandbox, which has a key itself.
func (s *session) fleetKey(ctx context.Context, o *hosts.Options) error {
	ref, text := s.config.SSH.PrivateKey, ""
	var err error
	switch {
	case !ref.IsZero():
		value, rerr := s.resolver().Resolve(ctx, ref)
		if rerr != nil {
			return keyAway(ref, fmt.Errorf("ssh private_key: %w", rerr))
		}
		text, o.KeySource = value.Reveal(), "secret "+ref.String()
	case s.world != nil:
		if text, err = s.world.SSHKey(); err != nil {
			return fmt.Errorf("ssh key of the sandbox: %w", err)
		}
		o.KeySource = "the sandbox's own key"
	default:
		return nil
	}
	if o.Key, err = hosts.ParsePrivateKey(text); err != nil {
		return fmt.Errorf("ssh private_key: %s: %w", o.KeySource, err)
	}
	return nil
}

// keyAway says that the fleet's key is in a cluster that does not answer, where that
// is why it cannot be had.
func keyAway(ref secret.Ref, err error) error {
	if ref.Scheme == secret.Kubernetes && kubernetes.Unanswered(err) {
		return &engine.AwayError{Provider: engine.Kubernetes, Err: err}
	}
	return err
}

// noFile is what --ssh-config takes for no file.
const noFile = "none"

// readSSHConfig asks ssh for the person's ssh configuration, or that of the file named
// instead. It returns nil where none is to count.
func (env *Env) readSSHConfig() (*sshconfig.Config, error) {
	if env.SSHConfig == noFile {
		return nil, nil
	}
	config, err := sshconfig.Read(env.SSHConfig)
	if errors.Is(err, sshconfig.ErrNoSSH) && env.SSHConfig == "" {
		if found := sshFiles(); len(found) > 0 {
			env.warn(fmt.Sprintf("%v, so %s has no effect; install OpenSSH's client, or pass --ssh-config none", err, strings.Join(found, " and ")))
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ssh configuration: %w; mend it, or name another with --ssh-config FILE (none reads no file)", err)
	}
	return config, nil
}

// sshFiles returns those of ssh's own files that are there.
func sshFiles() []string {
	files := []string{"/etc/ssh/ssh_config"}
	if home, err := os.UserHomeDir(); err == nil {
		files = append(files, filepath.Join(home, ".ssh", "config"))
	}
	return slices.DeleteFunc(files, func(name string) bool { _, err := os.Stat(name); return err != nil })
}
