package main

import (
	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/internal/app"
)

func versionCmd(env *app.Env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "version", Short: "Print macfleet's version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return app.Version(env, asJSON) }}
	jsonFlag(c.Flags(), &asJSON)
	return c
}
