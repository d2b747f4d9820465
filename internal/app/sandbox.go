package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/load"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/plan"
)

// sandboxDir returns the sandbox's folder: the default one next to the configuration, others relative to here.
func (env *Env) sandboxDir() string {
	if env.Sandbox == "" || env.Sandbox == SandboxDefault {
		return filepath.Join(env.Dir, SandboxDefault)
	}
	return env.Sandbox
}

// openWorld opens the simulated world, where --sandbox names one. A new one gets the configuration's values.
func (env *Env) openWorld(c *fleet.Config) (*sandbox.World, error) {
	if env.Sandbox == "" {
		return nil, nil
	}
	w, err := sandbox.Open(env.sandboxDir(), env.seed(c))
	if err == nil && c.ProjectID != "" && c.ProjectID != w.ProjectID() {
		return nil, errors.Join(fmt.Errorf("the sandbox %s was made for project %s, environment %q wants %s; name another folder, or run: macfleet sandbox reset",
			env.sandboxDir(), w.ProjectID(), c.Environment, c.ProjectID), w.Close())
	}
	return w, err
}

// seed returns the values for a new world. Where the configuration names none, any will do.
func (env *Env) seed(c *fleet.Config) sandbox.Seed {
	seed := sandbox.Seed{ProjectID: cmp.Or(c.ProjectID, "5a4d6b3c-0000-4000-8000-000000000001"),
		ClusterUID: cmp.Or(c.ClusterUID, "5a4d6b3c-0000-4000-8000-000000000002"), Zones: c.Scaleway.Zones,
		PoolPrefix: c.Scaleway.PoolPrefix, Hosts: env.SandboxHosts, SSHUser: c.SSH.User, SSHKeyRef: c.SSH.PrivateKey.String()}
	for _, h := range c.Hosts {
		if _, g, ok := c.Group(h.Fleet, h.Group); ok && h.ServerID != "" {
			seed.Rented = append(seed.Rented, sandbox.Rented{ID: h.ServerID, Name: h.Name, Type: g.Type})
		}
	}
	if c.Kubernetes != nil {
		seed.KubeContext = c.Kubernetes.Context
	}
	return seed
}

// IncidentGroup is what can happen to the same kind of target, with the name and the summary of each.
type IncidentGroup struct {
	Of   string // what they happen to, and what stands for it if that is no host
	Rows [][2]string
}

// Incidents are what can happen in the simulated world.
func Incidents() []IncidentGroup {
	rows := func(all []sandbox.Incident) [][2]string {
		return mapped(all, func(i sandbox.Incident) [2]string { return [2]string{i.Name, i.Summary} })
	}
	return []IncidentGroup{{"a host", rows(sandbox.Incidents())},
		{"a host with GitHub's runner", rows(sandbox.RunnerIncidents())},
		{"a host in the tailnet", rows(sandbox.TailnetIncidents())},
		{"the account and the pool, with " + sandbox.Account + " as HOST", rows(sandbox.AccountIncidents())},
		{"the access to the cluster, with " + sandbox.Cluster + " as HOST", rows(sandbox.ClusterIncidents())},
		{"the GitHub App and the runner's releases, with " + sandbox.GitHubAccount + " as HOST", rows(sandbox.GitHubIncidents())},
		{"the tailnet, with " + sandbox.Tailnet + " as HOST", rows(sandbox.TailnetAccountIncidents())}}
}

// inWorld opens the world for a sandbox command. It needs a configuration only where it must be made.
func (env *Env) inWorld(do func(*sandbox.World) error) (err error) {
	var seed sandbox.Seed
	if !sandbox.Exists(env.sandboxDir()) {
		config, err := env.config(reading{})
		if err != nil {
			return err
		}
		seed = env.seed(config)
	}
	w, err := sandbox.Open(env.sandboxDir(), seed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return do(w)
}

// SandboxCreate creates a simulated world with a population. Without a configuration its values are defaults.
func SandboxCreate(ctx context.Context, env *Env, population string) (err error) {
	dir := env.sandboxDir()
	if sandbox.Exists(dir) {
		return fmt.Errorf("%s is a sandbox already; choose another folder with --sandbox=DIR, or run: macfleet sandbox reset", dir)
	}
	seed := sandbox.Seed{Hosts: env.SandboxHosts}
	if names, rerr := load.FileNames(os.DirFS(env.Dir)); rerr == nil && len(names) > 0 {
		config, err := env.config(reading{})
		if err != nil {
			return err
		}
		seed = env.seed(config)
	}
	seed.Population = population
	w, err := sandbox.Open(dir, seed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if population == sandbox.ByHand {
		if err := w.Furnish(ctx); err != nil {
			return errors.Join(err, sandbox.Reset(dir))
		}
	}
	all, err := w.Hosts()
	if err == nil {
		env.outText().Say(fmt.Sprintf("Created the sandbox %s with %d servers.", dir, len(all)))
	}
	return err
}

// Populations are the names of the populations that a new world can have.
func Populations() []string { return sandbox.Populations() }

// SandboxList lists the simulated servers and their incidents.
func SandboxList(env *Env) error {
	return env.inWorld(func(w *sandbox.World) error {
		all, err := w.Hosts()
		if err != nil {
			return err
		}
		rows := [][]string{{"NAME", "TYPE", "ZONE", "ADDRESS", "INCIDENTS"}}
		for _, h := range all {
			rows = append(rows, []string{h.Name, h.Type, h.Zone, h.Address, strings.Join(h.Incidents, ", ")})
		}
		open, err := w.Places()
		if err != nil {
			return err
		}
		for _, place := range slices.Sorted(maps.Keys(open)) {
			rows = append(rows, []string{place, "", "", "", strings.Join(open[place], ", ")})
		}
		env.outText().Table(rows, "ZONE", "TYPE")
		return nil
	})
}

// simulated returns the name of the simulated host that a name, its short form or its end stands
// for. Any other word is unchanged: the world knows ids and former names, too.
func simulated(w *sandbox.World, text string) (string, error) {
	all, err := w.Hosts()
	if err != nil || text == sandbox.Account || text == sandbox.Cluster || text == sandbox.GitHubAccount || text == sandbox.Tailnet {
		return text, err
	}
	names := mapped(all, func(h sandbox.Host) string { return h.Name })
	if slices.Contains(mapped(all, func(h sandbox.Host) string { return h.ID }), text) {
		return text, nil
	}
	name, err := plan.NewNames(fleet.Owner{}, names).One(text)
	return cmp.Or(name, text), err
}

// SandboxPath prints the folder that is a simulated host's file system.
func SandboxPath(env *Env) error {
	return env.inWorld(func(w *sandbox.World) error {
		host, err := simulated(w, env.Args[0])
		if err != nil {
			return err
		}
		path, err := w.Path(host)
		if err == nil {
			env.outText().Print(path + "\n")
		}
		return err
	})
}

// SandboxInject lets something happen to a host.
func SandboxInject(env *Env) error {
	host, incident := env.Args[0], env.Args[1]
	return env.disturb(host, func(w *sandbox.World, host string) (string, error) {
		return fmt.Sprintf("Injected %s on %s.", incident, host), w.Inject(host, incident)
	})
}

// SandboxHeal undoes incidents: one of a host, all of it, or all.
func SandboxHeal(env *Env) error {
	args := append(slices.Clone(env.Args), "", "")
	host, incident := args[0], args[1]
	return env.disturb(host, func(w *sandbox.World, host string) (string, error) {
		return fmt.Sprintf("Healed %s on %s.", cmp.Or(incident, "every incident"), cmp.Or(host, "all hosts")), w.Heal(host, incident)
	})
}

// SandboxBake bakes an image on a builder, as a workflow does, and prints what its job said.
func SandboxBake(ctx context.Context, env *Env) error {
	return env.inWorld(func(w *sandbox.World) error {
		host, err := simulated(w, env.Args[0])
		if err != nil {
			return err
		}
		log, err := w.Bake(ctx, host)
		env.outText().Print(log)
		if errors.Is(err, sandbox.ErrBakeFailed) {
			return fmt.Errorf("%w on %s; macfleet plan --on name=%[2]s says what is wrong", err, host)
		}
		return err
	})
}

// SandboxSwitch shows simulator behaviour that varies between real Macs: all of it, or one switch, which
// it sets where a value is given.
func SandboxSwitch(env *Env) error {
	host, nameAndValue := env.Args[0], env.Args[1:]
	if len(nameAndValue) == 2 {
		name, value := nameAndValue[0], nameAndValue[1]
		return env.disturb(host, func(w *sandbox.World, host string) (string, error) {
			return fmt.Sprintf("Switched %s to %s on %s.", name, value, host), w.SetSwitch(host, name, value)
		})
	}
	return env.inWorld(func(w *sandbox.World) error {
		host, err := simulated(w, host)
		if err != nil {
			return err
		}
		switches, err := w.Switches(host, nameAndValue...)
		if err != nil {
			return err
		}
		rows := [][]string{{"SWITCH", "VALUE", "VALUES", "CONTROLS"}}
		for _, s := range switches {
			rows = append(rows, []string{s.Name, s.Value, strings.Join(s.Values, ","), s.Summary})
		}
		env.outText().Table(rows, "VALUES")
		return nil
	})
}

// disturb does something to a simulated host, or to all where none is named, and reports it.
func (env *Env) disturb(host string, do func(w *sandbox.World, host string) (said string, err error)) error {
	return env.inWorld(func(w *sandbox.World) (err error) {
		if host != "" {
			if host, err = simulated(w, host); err != nil {
				return err
			}
		}
		said, err := do(w, host)
		if err == nil {
			env.outText().Say(said)
		}
		return err
	})
}

// SandboxReset removes the simulated world.
func SandboxReset(env *Env) error {
	// The pins are in the folder too. Without them the world is still whole; a folder with only pins is not a world.
	if sandbox.Exists(env.sandboxDir()) {
		pins := env.localPins("")
		for _, name := range []string{env.localPath("runs"), env.localPath("logs"), pins.own.Path, pins.own.Path + ".lock",
			pins.cache.Path, pins.cache.Path + ".lock"} {
			if err := os.RemoveAll(name); err != nil {
				return fmt.Errorf("remove the sandbox: %w", err)
			}
		}
	}
	if err := sandbox.Reset(env.sandboxDir()); err != nil {
		return err
	}
	env.outText().Say("Removed the sandbox " + env.sandboxDir() + ".")
	return nil
}

// SandboxRun runs a command against the simulated cluster, and ends with its exit code.
func SandboxRun(ctx context.Context, env *Env) error {
	return env.inWorld(func(w *sandbox.World) error { return env.runInWorld(ctx, w, env.Args) })
}

// runInWorld runs a command while the world is served. The token is in a file: others can read an environment.
func (env *Env) runInWorld(ctx context.Context, w *sandbox.World, args []string) (err error) {
	content, err := w.Kubeconfig()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "macfleet-sandbox-")
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err == nil {
		err = os.WriteFile(kubeconfig, content, 0o600)
	}
	if err != nil {
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
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("run %s in the sandbox: %w; sandbox run takes a command of this machine and no HOST, for example: macfleet sandbox run -- kubectl get nodes", args[0], err)
	case !errors.As(err, &ended):
		return fmt.Errorf("run %s in the sandbox: %w", args[0], err)
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exit(128 + int(status.Signal()))
	}
	return exit(ended.ExitCode())
}
