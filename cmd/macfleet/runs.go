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

func showCmd(env *app.Env) *cobra.Command {
	var o app.Form
	c := &cobra.Command{Use: "show RUN|FILE", Short: "Show what a run did, or a plan that plan --out kept", Args: cobra.ExactArgs(1), ValidArgsFunction: arguments(env, app.ARun),
		Long: "show tells who did what and when in a run, what happened on each host, and the last words of scripts that\n" +
			"failed. RUN is its id or how the id begins, or last. A file is shown by what is in it: a record of a run, or a\n" +
			"plan as plan printed it, with who made it and how long it is good. It reads files alone.",
		RunE: func(_ *cobra.Command, args []string) error { return app.Show(env, args[0], o) }}
	formFlags(c.Flags(), &o)
	return c
}
