package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func cordonCmd(env *app.Env) *cobra.Command {
	var o app.CordonOptions
	c := &cobra.Command{Use: "cordon SELECTOR|HOST...", Short: "Let no new Pod onto the Nodes of hosts, and empty them", Args: cobra.MinimumNArgs(1),
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
