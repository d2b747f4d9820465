package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/view"
)

func (a *app) validateCmd() *cobra.Command {
	var asJSON bool
	var notes annotations
	c := &cobra.Command{Use: "validate", Short: "Check the configuration, without network or credentials", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.validate(c.Context(), asJSON, notes) }}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	notes.flags(c)
	c.Flags().BoolVar(&a.inside, "no-secrets", false, "read no file outside of the configuration's folder; of secrets none is read anyway")
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
		warnOfIgnores(ctx, config, &faults)
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

// warnOfIgnores says which ignore blocks are good for nothing, before drift does at night.
func warnOfIgnores(ctx context.Context, config *fleet.Config, faults *view.Faults) {
	now := clockOf(ctx)()
	for _, i := range config.Ignores {
		if r, ok := drift.RemarkOn(i, now); ok {
			faults.WarnOfIgnore(i.Name, "Ignore without effect ("+r.Code+")", strings.Replace(r.Text+".", "?.", "?", 1))
		}
	}
}

// changedFiles enters artifacts whose files are not what was locked. A plan finds those
// that it would send; here nobody knows which hosts have them already.
func (a *app) changedFiles(ctx context.Context, config *fleet.Config, faults *view.Faults) {
	store := a.artifactStore(nil)
	for _, of := range config.Artifacts {
		if a.inside && !fleet.IsURL(of.Source) && !a.holds(of.Source) {
			faults.Warn("Artifact file was not compared", of.String()+": "+of.Source+" lies outside of the configuration's folder.")
			continue
		}
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

// holds reports whether a path leads to something in the configuration's folder, also
// through links, or to nothing there.
func (a *app) holds(path string) bool {
	root, err := os.OpenRoot(a.dir)
	if err != nil {
		return false
	}
	defer root.Close()
	_, err = root.Stat(filepath.FromSlash(path))
	return err == nil || errors.Is(err, fs.ErrNotExist)
}
