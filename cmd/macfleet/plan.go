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

func driftCmd(env *app.Env) *cobra.Command {
	var o app.DriftOptions
	c := &cobra.Command{Use: "drift", Short: "Show what changed behind our back", Args: cobra.NoArgs,
		Long: "drift looks at everything and changes nothing. What the configuration wants and was never\n" +
			"applied is counted and is no drift. What an ignore block names raises no alarm until its day;\n" +
			"apply mends it all the same. A provider that does not answer makes it incomplete, never clean.\n\n" + exitCodes,
		RunE: func(c *cobra.Command, _ []string) error { return app.Drift(c.Context(), env, o) }}
	c.Flags().StringVar(&o.Format, "format", app.DriftFormats()[0], "print it as `FORMAT`: text, json, markdown (the text of one issue) or prometheus (for its textfile collector)")
	c.Flags().BoolVar(&o.JSON, "json", false, "print one JSON document, as --format json")
	c.Flags().StringVar(&o.Since, "since", "", "compare with a `FILE` that --format json made: say what is new and what recovered, and keep what was known of hosts that cannot be asked now")
	c.Flags().StringVar(&o.Remember, "remember", "", "as --since with a `FILE` that need not be there yet, and put this look's document in its place")
	c.Flags().BoolVar(&o.ExitZero, "exit-zero", false, "exit 0 also with drift and when incomplete; errors stay errors")
	sourceFlags(c.Flags(), &o.Source)
	jsonIntoFlag(c.Flags(), &o.JSONInto)
	_ = c.RegisterFlagCompletionFunc("format", words(app.DriftFormats()...)) // it has more forms than a plan
	return c
}
