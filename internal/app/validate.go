package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/view"
)

// ValidateOptions are the flags of validate.
type ValidateOptions struct {
	JSON        bool
	NoSecrets   bool // no file outside of the configuration's folder is read
	Annotations Annotations
}

// Validate checks the configuration, without network or credentials.
func Validate(ctx context.Context, env *Env, o ValidateOptions) error {
	if err := o.Annotations.check(); err != nil {
		return err
	}
	config, faults, err := env.read(reading{inside: o.NoSecrets})
	if err != nil {
		return err
	}
	if config != nil {
		env.changedFiles(ctx, config, o.NoSecrets, &faults)
		warnOfIgnores(env.now(), config, &faults)
	}
	if err := o.Annotations.print(env, func(dir string) error { return view.GitHubFaults(env.Err, faults.Diags, dir) }); err != nil {
		return err
	}
	if o.JSON {
		err = view.WriteValidation(env.Out, view.DiagnosticsOf(faults.Diags))
	} else if len(faults.Diags) > 0 {
		err = env.errText().Diagnostics(faults.Files, faults.Diags)
	}
	switch {
	case err != nil:
		return err
	case faults.Diags.HasErrors():
		return exit(ExitError)
	case o.JSON:
		return nil
	}
	replicas := 0
	for _, f := range config.Fleets {
		for _, g := range f.Groups {
			replicas += g.Replicas
		}
	}
	env.outText().Valid(config.Owner.String(), len(config.Fleets), replicas)
	return nil
}

// Version prints macfleet's version.
func Version(env *Env, asJSON bool) error {
	return env.answer(asJSON, view.WriteVersion, func(t *view.Text) { t.Say("macfleet " + fleet.Version) })
}

// warnOfIgnores says which ignore blocks are good for nothing, before drift does at night.
func warnOfIgnores(now time.Time, config *fleet.Config, faults *view.Faults) {
	for _, i := range config.Ignores {
		if r, ok := drift.RemarkOn(i, now); ok {
			faults.WarnOfIgnore(i.Name, "Ignore without effect ("+r.Code.String()+")", strings.Replace(r.Text+".", "?.", "?", 1))
		}
	}
}

// changedFiles enters artifacts whose files are not what was locked. A plan finds those
// that it would send; here nobody knows which hosts have them already.
func (env *Env) changedFiles(ctx context.Context, config *fleet.Config, inside bool, faults *view.Faults) {
	store := env.artifactStore(nil)
	for _, of := range config.Artifacts {
		if inside && !fleet.IsURL(of.Source) && !env.holds(of.Source) {
			faults.Warn("Artifact file was not compared", of.String()+": "+of.Source+" lies outside of the configuration's folder.")
			continue
		}
		if err := store.Unchanged(ctx, of); err != nil {
			faults.Add("Artifact file is not what was locked", err.Error()+".")
		}
	}
}

// holds reports whether a path leads to something in the configuration's folder, also
// through links, or to nothing there.
func (env *Env) holds(path string) bool {
	root, err := os.OpenRoot(env.Dir)
	if err != nil {
		return false
	}
	defer root.Close()
	_, err = root.Stat(filepath.FromSlash(path))
	return err == nil || errors.Is(err, fs.ErrNotExist)
}
