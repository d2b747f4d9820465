package main

import (
	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func doctorCmd(env *app.Env) *cobra.Command {
	var o app.DoctorOptions
	c := &cobra.Command{Use: "doctor HOST", Short: "Look at one host and say what is wrong with it", Args: cobra.ExactArgs(1), ValidArgsFunction: arguments(env, app.AHost),
		Long: "doctor asks one server of the inventory everything that plan asks, and changes nothing: a member,\n" +
			"a server of the pool or any other, by its name or id. It prints a check list with remedies.\n\n" +
			"--record keeps the host's answers in a file, without names, addresses and keys: from a real Mac\n" +
			"it is a test for macfleet's steps. Read it before you give it away.\n\n" +
			"Exit codes: 0 all ok, 1 no such server or no inventory, 3 something is not ok.",
		RunE: func(c *cobra.Command, args []string) error {
			o.Host = args[0]
			return app.Doctor(c.Context(), env, o)
		}}
	jsonFlag(c.Flags(), &o.JSON)
	c.Flags().StringVar(&o.Record, "record", "", "keep the answers in a new `FILE`")
	c.Flags().BoolVar(&o.Force, "force", false, "replace FILE when it exists")
	return c
}

func explainCmd(env *app.Env) *cobra.Command {
	var o app.ExplainOptions
	c := &cobra.Command{Use: "explain HOST [STEP]", Short: "Say everything about one host: each value with its place, what was seen, what would be done and why",
		Args: cobra.RangeArgs(1, 2), ValidArgsFunction: arguments(env, app.AHost, app.AStep),
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
