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
