package main

import (
	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func runsCmd(env *app.Env) *cobra.Command {
	asJSON := false
	c := &cobra.Command{Use: "runs", Short: "List the runs that were made from here", Args: cobra.NoArgs,
		Long: "runs lists the runs that changed something from this machine, or meant to, the newest first. One that broke\n" +
			"off has no end in its record, and its process is gone. It reads files alone.",
		RunE: func(*cobra.Command, []string) error { return app.Runs(env, asJSON) }}
	jsonFlag(c.Flags(), &asJSON)
	return c
}
