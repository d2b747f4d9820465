package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/plan"
)

func (a *app) hostsCmd() *cobra.Command {
	var format string
	var from source
	var wait waitOptions
	c := &cobra.Command{Use: "hosts", Short: "List the members: reachable, converged, Ready", Args: cobra.NoArgs,
		Long: "hosts lists the members. With --wait ready it looks at the cluster until the Nodes of all selected\n" +
			"members are Ready, and tells who is not whenever that changes. A host whose Node says Ready is asked\n" +
			"whether its kubelet runs, and a heartbeat of the process before does not count.\n\n" +
			"Exit codes with --wait: 0 all are Ready, 1 error, 3 some were not in time or are not there.",
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("wait") {
				if c.Flags().Changed("timeout") {
					return errors.New("--timeout is of --wait: write hosts --wait ready --timeout 10m")
				}
				return a.hosts(c.Context(), from, format, wait)
			}
			if from != (source{}) || format != "" && format != "json" {
				return errors.New("--wait goes with --json alone: it looks at the cluster until the Nodes are Ready, and lists nothing; write hosts --wait ready [--json]")
			}
			wait.json = wait.json || format == "json"
			return a.wait(c.Context(), wait)
		}}
	f := c.Flags()
	f.StringVarP(&format, "output", "o", "", "wide, json or name")
	f.BoolVar(&wait.json, "json", false, "print one JSON document, as -o json does")
	f.StringVar(&wait.what, "wait", "", "wait until the Nodes of all members are in a `STATE`: ready")
	f.DurationVar(&wait.timeout, "timeout", 10*time.Minute, "how `LONG` --wait waits")
	from.flags(c)
	c.AddCommand(a.trustCmd())
	return c
}

func (a *app) hosts(ctx context.Context, from source, format string, wait waitOptions) error {
	if wait.json && format == "" {
		format = "json"
	}
	if !slices.Contains([]string{"", "wide", "json", "name"}, format) {
		return fmt.Errorf("--output %s: write wide, json or name", format)
	}
	p, err := a.look(ctx, from)
	if err != nil {
		return err
	}
	t := a.outText()
	switch format {
	case "json":
		return view.WriteHosts(a.out, p)
	case "name":
		t.HostNames(p)
	default:
		t.Hosts(p, format == "wide")
	}
	return nil
}

func (a *app) trustCmd() *cobra.Command {
	return &cobra.Command{Use: "trust NAME", Short: "Forget a host's pinned key", Args: cobra.ExactArgs(1),
		Long: "trust drops the pinned key of a host that was reinstalled on purpose, or the trace of a server\n" +
			"that is really gone. The next plan shows the new key and the next apply pins it.",
		RunE: func(c *cobra.Command, args []string) error { return a.trust(c.Context(), args[0]) }}
}

func (a *app) trust(ctx context.Context, name string) error {
	return a.withCluster(ctx, func(looking, acting context.Context, s *session) error {
		s.tellInProgress(looking)
		a.acting.Store(true)
		dropped, err := drop(s.pins(acting), name)
		if err != nil {
			return err
		}
		a.logged(slog.LevelInfo, "forgot", "host", name, "server", dropped.ServerID, "key", hosts.FingerprintOf(dropped))
		a.outText().Say(fmt.Sprintf("Forgot the key %s of %s, pinned since %s.", hosts.FingerprintOf(dropped), name, dropped.Since.Format("2006-01-02")))
		return nil
	})
}

// pinFile is where the host keys of an environment are kept that this machine
// pinned, as long as no cluster keeps them.
func (a *app) pinFile(environment string) hosts.KnownHosts {
	if a.sandbox != "" {
		return hosts.KnownHosts{Path: filepath.Join(a.sandboxDir(), "known_hosts")}
	}
	name := "known_hosts"
	if environment != "" {
		name += "-" + environment
	}
	return hosts.KnownHosts{Path: filepath.Join(a.dir, ".macfleet", name)}
}

// drop removes the pin of a host and returns it.
func drop(pins hosts.Pins, name string) (plan.Pin, error) {
	all, err := pins.All()
	if err != nil {
		return plan.Pin{}, err
	}
	var names []string
	for _, p := range all {
		if p.Name == name {
			return p, pins.Update(func(now []plan.Pin) []plan.Pin {
				return slices.DeleteFunc(now, func(q plan.Pin) bool { return q.Name == name })
			})
		}
		names = append(names, p.Name)
	}
	hint := "; macfleet hosts lists the members"
	if near := fleet.Nearest(name, names); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return plan.Pin{}, fmt.Errorf("no host key is pinned for %s%s", name, hint)
}
