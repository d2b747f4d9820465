package main

import (
	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/view"
)

func (a *app) validateCmd() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "validate", Short: "Check the configuration, without network or credentials", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.validateJSON()
			}
			return a.validate()
		}}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

func (a *app) validateJSON() error {
	config, faults, err := a.read()
	if err != nil {
		return err
	}
	if err := view.WriteValidation(a.out, view.DiagnosticsOf(faults.Diags)); err != nil {
		return err
	}
	if config == nil {
		return exit(exitError)
	}
	return nil
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
	var asJSON bool
	c := &cobra.Command{Use: "version", Short: "Print macfleet's version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return view.WriteVersion(a.out)
			}
			a.outText().Say("macfleet " + fleet.Version)
			return nil
		}}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}
