package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/hosts/sshconfig"
	"github.com/macfleet/macfleet/providers/kubernetes"
)

// client makes the client of hosts: from the configuration's ssh block and, in
// the real world, from the person's own ssh configuration and agent.
func (s *session) client(ctx context.Context, cluster *kubernetes.Client) (*hosts.Client, error) {
	o := hosts.Options{User: s.config.SSH.User, Via: s.config.SSH.Via, Deadlines: deadlines(s.config.SSH.Timeouts), Starts: s.app.starts, Progress: s.sent, Log: s.app.logger}
	if err := s.fleetKey(ctx, cluster, &o); err != nil {
		return nil, err
	}
	if s.world != nil {
		o.Dial = s.world.DialContext
		o.Lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, nil }
		return hosts.New(o), nil
	}
	config, err := s.app.readSSHConfig()
	if err != nil {
		return nil, err
	}
	if config != nil {
		o.Config = config
	}
	o.Agent = os.Getenv("SSH_AUTH_SOCK")
	return hosts.New(o), nil
}

func deadlines(t fleet.Timeouts) hosts.Deadlines {
	return hosts.Deadlines{Dial: t.Dial, Handshake: t.Handshake, Question: t.Question, Change: t.Change, Exchange: t.Exchange, Silence: t.Silence, Undo: t.Undo}
}

// fleetKey resolves the configuration's private key. Without one the person's
// own keys count, except in a sandbox, which has a key itself.
func (s *session) fleetKey(ctx context.Context, cluster *kubernetes.Client, o *hosts.Options) error {
	ref, text := s.config.SSH.PrivateKey, ""
	var err error
	switch {
	case !ref.IsZero():
		value, rerr := s.resolver(cluster).Resolve(ctx, ref)
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

// noFile is what --ssh-config takes for no file.
const noFile = "none"

// readSSHConfig reads the person's ssh configuration, or the file named instead
// of it. It returns nil where no file is to count.
func (a *app) readSSHConfig() (*sshconfig.Config, error) {
	if a.sshConfig == noFile {
		return nil, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fmt.Errorf("read the ssh configuration: %w; set HOME, or name a file with --ssh-config", err)
	}
	sources := sshconfig.Sources(home)
	if a.sshConfig != "" {
		// As with ssh -F, the system's file does not count then.
		sources = []sshconfig.Source{{Path: a.sshConfig, Base: filepath.Join(home, ".ssh")}}
	}
	env := sshconfig.Environment{Home: home, User: os.Getenv("USER"), UID: strconv.Itoa(os.Getuid()), LookupEnv: os.LookupEnv}
	if me, err := user.Current(); err == nil { // a container may know no name
		env.User = me.Username
	}
	return sshconfig.Read(env, sources)
}
