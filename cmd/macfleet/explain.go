package main

import (
	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func explainCmd(env *app.Env) *cobra.Command {
	var o app.ExplainOptions
	c := &cobra.Command{Use: "explain HOST [STEP]", Short: "Say everything about one host: each value with its place, what was seen, what would be done and why",
		Args: cobra.RangeArgs(1, 2),
		Long: "explain looks at one host and changes nothing. For each step it shows every value that counts\n" +
			"with the file and line it was written at, what was seen, what differs, what would be done and\n" +
			"why, and the last proof. HOST is a name that `macfleet hosts` or `macfleet plan` shows, or\n" +
			"the server's present one.",
		RunE: func(c *cobra.Command, args []string) error {
			o.Host, o.Step = args[0], append(args, "")[1]
			return app.Explain(c.Context(), env, o)
		}}
	jsonFlag(c.Flags(), &o.JSON)
	c.Flags().StringVar(&o.Snapshot, "snapshot", "", "look at a `FILE` that plan --record made, without network or credentials")
	c.Flags().BoolVar(&o.Script, "script", false, "print the exact scripts that would run")
	return c
}
