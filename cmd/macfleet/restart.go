package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func restartCmd(env *app.Env) *cobra.Command {
	var o app.RestartOptions
	c := &cobra.Command{Use: "restart HOST JOB", Short: "Start a job of a host anew, and prove it", Args: cobra.ExactArgs(2),
		Long: "restart starts a job anew on a host that has no difference in it, and waits for a new process that is\n" +
			"the same some seconds later, and then for the host's Node. The jobs are: " + strings.Join(app.Jobs(), ", ") + ".\n" +
			"Virtual machines go on. Where something differs, macfleet apply --on name=HOST repairs that, and\n" +
			"restarts what has to be.\n\n" + exitCodes,
		RunE: func(c *cobra.Command, args []string) error {
			o.Host, o.Job = args[0], args[1]
			return app.Restart(c.Context(), env, o)
		}}
	lockFlags(c.Flags(), &o.Locking)
	approveFlag(c.Flags(), &o.Approve)
	return c
}
