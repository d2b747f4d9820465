package main

import (
	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func artifactsCmd(env *app.Env) *cobra.Command {
	c := &cobra.Command{Use: "artifacts", Short: "Lock the files that hosts get, and say where they are", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(artifactsLockCmd(env), artifactsStatusCmd(env))
	return c
}

func artifactsLockCmd(env *app.Env) *cobra.Command {
	var o app.LockArtifactsOptions
	c := &cobra.Command{Use: "lock [NAME...]", Short: "Write the digests of artifacts into the configuration", Args: cobra.ArbitraryArgs, ValidArgsFunction: arguments(env, app.AnArtifact),
		Long: "lock reads the source of each artifact, downloading URLs, and writes sha256 and size into its block.\n" +
			"A digest that stands there already is changed with --update alone: a server that has other bytes\n" +
			"under the same name is an accident or an attack.",
		RunE: func(c *cobra.Command, args []string) error {
			o.Names = args
			return app.LockArtifacts(c.Context(), env, o)
		}}
	c.Flags().BoolVar(&o.Check, "check", false, "write nothing; exit with 2 when a block is out of date")
	c.Flags().BoolVar(&o.Update, "update", false, "also change digests that are locked")
	return c
}

func artifactsStatusCmd(env *app.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "status", Short: "List the artifacts: version, digest, whether they are here, who uses them", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return app.ArtifactsStatus(c.Context(), env, asJSON) }}
	jsonFlag(c.Flags(), &asJSON)
	return c
}
