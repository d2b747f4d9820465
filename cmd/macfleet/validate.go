package main

import (
	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet"
)

func (a *app) validateCmd() *cobra.Command {
	return &cobra.Command{Use: "validate", Short: "Check the configuration, without network or credentials", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.validate() }}
}

func (a *app) validate() error {
	config, err := a.config()
	if err != nil {
		return err
	}
	replicas := 0
	for _, f := range config.Fleets {
		for _, g := range f.Groups {
			replicas += g.Replicas
		}
	}
	a.outText().Valid(config.Owner.String(), len(config.Fleets), replicas)
	return nil
}

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print macfleet's version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			a.outText().Say("macfleet " + fleet.Version)
			return nil
		}}
}
