package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/load"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/view"
)

// reading says how a configuration is read.
type reading struct {
	inside   bool // no file outside of the configuration's folder is read for it
	unlocked bool // an artifact may lack its digest
}

// config reads the configuration. Faults are shown, and the error is then just
// the exit code.
func (env *Env) config(how reading) (*fleet.Config, error) {
	config, faults, err := env.read(how)
	if err != nil {
		return nil, err
	}
	env.stream.Diagnostics(view.DiagnosticsOf(faults.Diags))
	if !env.mute && len(faults.Diags) > 0 {
		if err := env.errText().Diagnostics(faults.Files, faults.Diags); err != nil {
			return nil, err
		}
	}
	if config == nil {
		return nil, exit(ExitError)
	}
	return config, nil
}

// read reads the configuration, which is nil when a fault of it is an error.
func (env *Env) read(how reading) (*fleet.Config, view.Faults, error) {
	opts := load.Options{Environment: env.Environment, Env: variables(os.Environ()), Vars: env.Vars, Version: fleet.Version, Unlocked: how.unlocked}
	for _, name := range env.VarFiles {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, view.Faults{}, fmt.Errorf("read variables: %w", err)
		}
		opts.VarFiles = append(opts.VarFiles, load.VarFile{Name: name, Content: content})
	}
	if info, err := os.Stat(env.Dir); err != nil || !info.IsDir() {
		if err == nil {
			err = &fs.PathError{Op: "open", Path: env.Dir, Err: errors.New("not a directory")}
		}
		return nil, view.Faults{}, fmt.Errorf("read the configuration: %w; name its directory with -C", err)
	}
	files := os.DirFS(env.Dir)
	if how.inside {
		root, err := os.OpenRoot(env.Dir)
		if err != nil {
			return nil, view.Faults{}, fmt.Errorf("read the configuration: %w", err)
		}
		defer root.Close()
		files = root.FS()
	}
	type loaded struct {
		config *fleet.Config
		faults view.Faults
	}
	r, err := within(env.stop, longestReading, func() loaded {
		result, diags := load.Dir(files, opts)
		return loaded{result.Config, view.Faults{Files: result.Files, Diags: diags, Ends: result.Ends}}
	})
	if err != nil {
		return nil, view.Faults{}, fmt.Errorf("the configuration: %w", err)
	}
	return r.config, r.faults, nil
}

// variables returns what MACFLEET_VAR_<name> says, by name.
func variables(environ []string) map[string]string {
	out := make(map[string]string)
	for _, e := range environ {
		if rest, ok := strings.CutPrefix(e, "MACFLEET_VAR_"); ok {
			name, value, _ := strings.Cut(rest, "=")
			if name != "FILE" { // MACFLEET_VAR_FILE is --var-file
				out[name] = value
			}
		}
	}
	return out
}

// longestReading is how long a configuration may take to evaluate. Real ones take
// milliseconds; one that makes much out of little, list by list, would keep a job until
// its memory is full.
const longestReading = 30 * time.Second

// within returns what f returns, unless that takes longer, or the first Ctrl-C comes
// before. Then f goes on until the process ends.
func within[T any](stop context.Context, limit time.Duration, f func() T) (T, error) {
	done := make(chan T, 1)
	go func() { done <- f() }()
	late := time.NewTimer(limit)
	defer late.Stop()
	var none T
	select {
	case v := <-done:
		return v, nil
	case <-stop.Done():
		return none, errors.New("stopped before it was evaluated")
	case <-late.C:
		return none, fmt.Errorf("it takes longer than %s to evaluate; look for lists that are made of lists, and write them shorter", limit)
	}
}

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
			faults.Warn(i.Name, "Ignore without effect ("+r.Code.String()+")", strings.Replace(r.Text+".", "?.", "?", 1))
		}
	}
}

// changedFiles enters artifacts whose files are not what was locked. A plan finds those
// that it would send; here nobody knows which hosts have them already.
func (env *Env) changedFiles(ctx context.Context, config *fleet.Config, inside bool, faults *view.Faults) {
	store := env.artifactStore(nil)
	for _, of := range config.Artifacts {
		if inside && !fleet.IsURL(of.Source) && !env.holds(of.Source) {
			faults.Warn("", "Artifact file was not compared", of.String()+": "+of.Source+" lies outside of the configuration's folder.")
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
