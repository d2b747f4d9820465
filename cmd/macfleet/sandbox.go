package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/sandbox"
)

// sandboxDir returns the sandbox's folder. The default one lies beside the
// configuration; any other is relative to the working directory.
func (a *app) sandboxDir() string {
	if a.sandbox == "" || a.sandbox == sandboxDefault {
		return filepath.Join(a.dir, sandboxDefault)
	}
	return a.sandbox
}

// openWorld opens the simulated world, where one is asked for, and makes it when
// it is not there, with the configuration's plain values.
func (s *session) openWorld() error {
	if s.app.sandbox == "" {
		return nil
	}
	w, err := sandbox.Open(s.app.sandboxDir(), s.app.seed(s.config))
	if err != nil {
		return err
	}
	s.world = w
	if want := s.config.ProjectID; want != "" && want != w.ProjectID() {
		return fmt.Errorf("the sandbox %s was made for project %s, environment %q wants %s; name another folder, or run: macfleet sandbox reset",
			s.app.sandboxDir(), w.ProjectID(), s.config.Environment, want)
	}
	return nil
}

// seed returns the values for a new world. Where the configuration names none,
// any will do.
func (a *app) seed(c *fleet.Config) sandbox.Seed {
	seed := sandbox.Seed{ProjectID: c.ProjectID, ClusterUID: c.ClusterUID, Zones: c.Scaleway.Zones,
		PoolPrefix: c.Scaleway.PoolPrefix, Hosts: a.sandboxHosts, SSHUser: c.SSH.User, SSHKeyRef: c.SSH.PrivateKey.String()}
	if c.Kubernetes != nil {
		seed.KubeContext = c.Kubernetes.Context
	}
	if seed.ProjectID == "" {
		seed.ProjectID = "5a4d6b3c-0000-4000-8000-000000000001"
	}
	if seed.ClusterUID == "" {
		seed.ClusterUID = "5a4d6b3c-0000-4000-8000-000000000002"
	}
	return seed
}

func (a *app) sandboxCmd() *cobra.Command {
	c := &cobra.Command{Use: "sandbox", Short: "Look at and disturb the simulated world", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	var incidents strings.Builder
	for _, i := range sandbox.Incidents() {
		fmt.Fprintf(&incidents, "  %-22s %s\n", i.Name, i.Summary)
	}
	c.AddCommand(
		&cobra.Command{Use: "list", Short: "List the simulated servers and their incidents", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return a.inWorld(a.sandboxList) }},
		&cobra.Command{Use: "path HOST", Short: "Print the folder that is a simulated host's file system", Args: cobra.ExactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error {
				return a.inWorld(func(w *sandbox.World) error {
					path, err := w.Path(args[0])
					if err == nil {
						a.outText().Print(path + "\n")
					}
					return err
				})
			}},
		&cobra.Command{Use: "inject HOST INCIDENT", Short: "Let something happen to a host", Args: cobra.ExactArgs(2),
			Long: "inject lets something happen to a host. The incidents:\n\n" + incidents.String(),
			RunE: func(_ *cobra.Command, args []string) error {
				return a.inWorld(func(w *sandbox.World) error { return a.inject(w, args[0], args[1]) })
			}},
		&cobra.Command{Use: "heal [HOST [INCIDENT]]", Short: "Undo incidents", Args: cobra.MaximumNArgs(2),
			RunE: func(_ *cobra.Command, args []string) error {
				args = append(args, "", "")
				return a.inWorld(func(w *sandbox.World) error { return a.heal(w, args[0], args[1]) })
			}},
		&cobra.Command{Use: "switch HOST [NAME [VALUE]]", Short: "Show or set how a simulated host behaves where Macs are told to differ", Args: cobra.RangeArgs(1, 3),
			RunE: func(_ *cobra.Command, args []string) error {
				return a.inWorld(func(w *sandbox.World) error {
					if len(args) < 3 {
						return a.showSwitches(w, args[0], args[1:])
					}
					return a.setSwitch(w, args[0], args[1], args[2])
				})
			}},
		a.sandboxRunCmd(),
		&cobra.Command{Use: "reset", Short: "Remove the simulated world", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return a.reset() }},
	)
	return c
}

// inWorld opens the world for one of the sandbox commands. It needs a
// configuration only where the world must be made.
func (a *app) inWorld(do func(*sandbox.World) error) (err error) {
	var seed sandbox.Seed
	if !sandbox.Exists(a.sandboxDir()) {
		config, err := a.config()
		if err != nil {
			return err
		}
		seed = a.seed(config)
	}
	w, err := sandbox.Open(a.sandboxDir(), seed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return do(w)
}

func (a *app) sandboxList(w *sandbox.World) error {
	all, err := w.Hosts()
	if err != nil {
		return err
	}
	rows := [][]string{{"NAME", "TYPE", "ZONE", "ADDRESS", "INCIDENTS"}}
	for _, h := range all {
		rows = append(rows, []string{h.Name, h.Type, h.Zone, h.Address, strings.Join(h.Incidents, ",")})
	}
	a.outText().Table(rows)
	return nil
}

func (a *app) inject(w *sandbox.World, host, incident string) error {
	if err := w.Inject(host, incident); err != nil {
		return err
	}
	a.outText().Say(fmt.Sprintf("Injected %s on %s.", incident, host))
	return nil
}

func (a *app) heal(w *sandbox.World, host, incident string) error {
	if err := w.Heal(host, incident); err != nil {
		return err
	}
	what := "every incident"
	if incident != "" {
		what = incident
	}
	where := "all hosts"
	if host != "" {
		where = host
	}
	a.outText().Say(fmt.Sprintf("Healed %s on %s.", what, where))
	return nil
}

// showSwitches shows the switches of a host that are named, or all.
func (a *app) showSwitches(w *sandbox.World, host string, names []string) error {
	switches, err := w.Switches(host, names...)
	if err != nil {
		return err
	}
	rows := [][]string{{"SWITCH", "VALUE", "VALUES", "DECIDES"}}
	for _, s := range switches {
		rows = append(rows, []string{s.Name, s.Value, strings.Join(s.Values, ","), s.Summary})
	}
	a.outText().Table(rows)
	return nil
}

func (a *app) setSwitch(w *sandbox.World, host, name, value string) error {
	if err := w.SetSwitch(host, name, value); err != nil {
		return err
	}
	a.outText().Say(fmt.Sprintf("Switched %s to %s on %s.", name, value, host))
	return nil
}

func (a *app) reset() error {
	// The pins lie in the folder too. Without them the world is still whole; a
	// folder with pins alone would be no world.
	if sandbox.Exists(a.sandboxDir()) {
		for _, kept := range []string{"runs", "logs"} {
			if err := os.RemoveAll(a.beside(kept)); err != nil {
				return fmt.Errorf("remove the sandbox: %w", err)
			}
		}
		for _, pins := range []string{a.pinFile("").Path, a.pinCache("").Path} {
			if err := errors.Join(removeIfThere(pins), removeIfThere(pins+".lock")); err != nil {
				return err
			}
		}
	}
	if err := sandbox.Reset(a.sandboxDir()); err != nil {
		return err
	}
	a.outText().Say("Removed the sandbox " + a.sandboxDir() + ".")
	return nil
}

func removeIfThere(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the sandbox: %w", err)
	}
	return nil
}
