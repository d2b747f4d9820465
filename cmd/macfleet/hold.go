package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func holdCmd(env *app.Env) *cobra.Command {
	var o app.HoldOptions
	c := &cobra.Command{Use: "hold SELECTOR|HOST...", Short: "Keep everybody off hosts until a time", Args: cobra.MinimumNArgs(1), ValidArgsFunction: arguments(env, app.HostsOrSelectors),
		Long: "hold lets no macfleet change the hosts until a time, whoever runs it and wherever: plans show who holds\n" +
			"them, why and until when. It stands in the host's marker and on its Node; one of the two is enough, so\n" +
			"that it works while the other cannot be reached.\n\n" +
			"  macfleet hold acme-production-runners-m2-0bccd --reason \"its fan is loud\" --until 3d\n" +
			"  macfleet hold fleet=builders --reason \"release week\" --until 2026-11-28\n\n" +
			"Exit codes: 0 done, 1 error, 3 some hosts are not held.",
		RunE: func(c *cobra.Command, args []string) error {
			o.Hosts = args
			return app.Hold(c.Context(), env, o)
		}}
	c.Flags().StringVar(&o.Reason, "reason", "", "why, as a `TEXT` that every plan shows")
	c.Flags().StringVar(&o.Until, "until", "", "until `WHEN`: 90m, 12h, 3d, 2w, or a time in UTC such as 2026-11-28; at most 30 days")
	return c
}

func unholdCmd(env *app.Env) *cobra.Command {
	return &cobra.Command{Use: "unhold SELECTOR|HOST...", Short: "Take a hold away", Args: cobra.MinimumNArgs(1), ValidArgsFunction: arguments(env, app.HostsOrSelectors),
		Long: "unhold takes away the holds of hosts, whoever set them, from their markers and their Nodes. A place that\n" +
			"cannot be reached keeps its hold, and the host stays held.\n\n" +
			"Exit codes: 0 done, 1 error, 3 some hosts are still held.",
		RunE: func(c *cobra.Command, args []string) error { return app.Unhold(c.Context(), env, args) }}
}

func cordonCmd(env *app.Env) *cobra.Command {
	var o app.CordonOptions
	c := &cobra.Command{Use: "cordon SELECTOR|HOST...", Short: "Let no new Pod onto the Nodes of hosts, and empty them", Args: cobra.MinimumNArgs(1), ValidArgsFunction: arguments(env, app.HostsOrSelectors),
		Long: "cordon closes the Nodes of hosts to new Pods and notes on them who did so with macfleet. --undo opens\n" +
			"those again, and leaves alone what somebody closed by another way. --drain then evicts their Pods, one\n" +
			"Node after the other; disruption budgets are honoured, Pods of DaemonSets stay.\n\n" +
			"  macfleet cordon acme-production-runners-m2-0bccd --drain\n" +
			"  macfleet cordon fleet=runners,zone=fr-par-3\n\n" +
			"Exit codes: 0 done, 1 error or not approved, 3 some Nodes are not closed, opened or empty.",
		RunE: func(c *cobra.Command, args []string) error {
			o.Hosts = args
			return app.Cordon(c.Context(), env, o)
		}}
	f := c.Flags()
	f.BoolVar(&o.Undo, "undo", false, "open the Nodes again that macfleet closed")
	f.BoolVar(&o.Drain, "drain", false, "evict the Pods too")
	f.DurationVar(&o.Timeout, "timeout", 10*time.Minute, "how `LONG` the Pods of a Node have until they are gone")
	f.BoolVar(&o.Force, "force", false, "evict Pods too that nothing makes again")
	approveFlag(f, &o.Approve)
	return c
}
