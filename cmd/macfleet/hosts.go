package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func hostsCmd(env *app.Env) *cobra.Command {
	var o app.HostsOptions
	c := &cobra.Command{Use: "hosts", Short: "List the members: reachable, converged, Ready", Args: cobra.NoArgs,
		Long: "hosts lists the members. With --wait ready it looks at the cluster until the Nodes of all selected\n" +
			"members are Ready, and tells who is not whenever that changes. A host whose Node says Ready is asked\n" +
			"whether its kubelet runs, and a heartbeat of the process before does not count.\n\n" +
			"Exit codes with --wait: 0 all are Ready, 1 error, 3 some were not in time or are not there.",
		RunE: func(c *cobra.Command, _ []string) error { return app.Hosts(c.Context(), env, o) }}
	f := c.Flags()
	f.StringVarP(&o.Format, "output", "o", "", "wide, json or name")
	f.BoolVar(&o.JSON, "json", false, "print one JSON document, as -o json does")
	f.StringVar(&o.Wait, "wait", "", "wait until the Nodes of all members are in a `STATE`: ready")
	f.DurationVar(&o.Timeout, "timeout", 10*time.Minute, "how `LONG` --wait waits")
	sourceFlags(f, &o.Source)
	c.AddCommand(trustCmd(env))
	return c
}

func trustCmd(env *app.Env) *cobra.Command {
	return &cobra.Command{Use: "trust NAME", Short: "Forget a host's pinned key", Args: cobra.ExactArgs(1), ValidArgsFunction: arguments(env, app.APinnedHost),
		Long: "trust drops the pinned key of a host that was reinstalled on purpose, or the trace of a server\n" +
			"that is really gone. The next plan shows the new key and the next apply pins it.",
		RunE: func(c *cobra.Command, args []string) error { return app.Trust(c.Context(), env, args[0]) }}
}
