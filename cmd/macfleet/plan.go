package main

import (
	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func planCmd(env *app.Env) *cobra.Command {
	var o app.PlanOptions
	c := &cobra.Command{Use: "plan", Short: "Show what would change, and why", Args: cobra.NoArgs,
		Long: "plan looks at everything and changes nothing. With --snapshot it looks at a file that --record made.\n" +
			"With --out it keeps the plan in a file: show prints it, and apply FILE does exactly what it approves.\n" +
			"With --no-secrets it needs no credential and asks nobody: it reads the configuration, and compares it\n" +
			"with a --snapshot or with nothing.\n\n" + exitCodes,
		RunE: func(c *cobra.Command, _ []string) error { return app.Plan(c.Context(), env, o) }}
	formFlags(c.Flags(), &o.Form)
	c.Flags().BoolVar(&o.Scripts, "show-scripts", false, "print the exact scripts that would run, too")
	sourceFlags(c.Flags(), &o.Source)
	c.Flags().StringVar(&o.Out, "out", "", "keep the plan in a `FILE`, for macfleet show and macfleet apply")
	c.Flags().DurationVar(&o.Expires, "expires", app.DefaultExpiry, "how `LONG` the file of --out may be applied, at most 168h")
	rollbackFlag(c.Flags(), &o.Rollback)
	boundsFlags(c.Flags(), &o.Bounds)
	jsonIntoFlag(c.Flags(), &o.JSONInto)
	c.Flags().BoolVar(&o.Detailed, "detailed-exitcode", false, "exit 2 with changes, 3 when incomplete")
	c.Flags().BoolVar(&o.NoSecrets, "no-secrets", false, "resolve no secret, use no credential and ask nobody")
	annotationsFlag(c.Flags(), &o.Annotations)
	return c
}
