package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/view"
)

func (a *app) validateCmd() *cobra.Command {
	var asJSON bool
	var notes annotations
	c := &cobra.Command{Use: "validate", Short: "Check the configuration, without network or credentials", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.validate(c.Context(), asJSON, notes) }}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	notes.flags(c)
	return c
}

func (a *app) validate(ctx context.Context, asJSON bool, notes annotations) error {
	if err := notes.check(); err != nil {
		return err
	}
	config, faults, err := a.read()
	if err != nil {
		return err
	}
	if config != nil {
		a.changedFiles(ctx, config, &faults)
	}
	if notes != "" {
		dir, err := a.folder()
		if err != nil {
			return err
		}
		if err := view.GitHubFaults(a.err, faults.Diags, dir); err != nil {
			return err
		}
	}
	if asJSON {
		err = view.WriteValidation(a.out, view.DiagnosticsOf(faults.Diags))
	} else if len(faults.Diags) > 0 {
		err = a.errText().Diagnostics(faults.Files, faults.Diags)
	}
	switch {
	case err != nil:
		return err
	case faults.Diags.HasErrors():
		return exit(exitError)
	case asJSON:
		return nil
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

// changedFiles enters artifacts whose files are not what was locked. A plan finds those
// that it would send; here nobody knows which hosts have them already.
func (a *app) changedFiles(ctx context.Context, config *fleet.Config, faults *view.Faults) {
	store := a.artifactStore(nil)
	for _, of := range config.Artifacts {
		if err := store.Unchanged(ctx, of); err != nil {
			faults.Add("Artifact file is not what was locked", err.Error()+".")
		}
	}
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
