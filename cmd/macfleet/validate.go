package main

import (
	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func validateCmd(env *app.Env) *cobra.Command {
	var o app.ValidateOptions
	c := &cobra.Command{Use: "validate", Short: "Check the configuration, without network or credentials", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return app.Validate(c.Context(), env, o) }}
	jsonFlag(c.Flags(), &o.JSON)
	annotationsFlag(c.Flags(), &o.Annotations)
	c.Flags().BoolVar(&o.NoSecrets, "no-secrets", false, "read no file outside of the configuration's folder; of secrets none is read anyway")
	return c
}

func fmtCmd(env *app.Env) *cobra.Command {
	var o app.FormatOptions
	c := &cobra.Command{
		Use:   "fmt [FILE...]",
		Short: "Lay out the configuration's files in the one canonical way",
		Long: "fmt lays out the *.fleet.hcl files of the directory, or the FILEs that are named, and prints the names\n" +
			"of those it changed. Only spaces change. \"-\" stands for standard input, laid out to standard output.\n\n" +
			"Exit codes:\n" +
			"  0    done; --check: all are laid out so already\n" +
			"  1    a file cannot be read, parsed or written; the others are done\n" +
			"  2    --check: some would change",
		RunE: func(_ *cobra.Command, args []string) error {
			o.Files = args
			return app.Format(env, o)
		},
	}
	annotationsFlag(c.Flags(), &o.Annotations)
	c.Flags().BoolVar(&o.Check, "check", false, "write nothing; print the names of what would change and exit with 2")
	return c
}

func versionCmd(env *app.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "version", Short: "Print macfleet's version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return app.Version(env, asJSON) }}
	jsonFlag(c.Flags(), &asJSON)
	return c
}
