package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/load"
	"github.com/macfleet/macfleet/internal/drift"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wholefile"
)

// reading says how a configuration is read.
type reading struct {
	inside   bool // no file outside of the configuration's folder is read for it
	unlocked bool // an artifact may lack its digest
	added    added
}

// config reads the configuration. Faults are shown, and the error is then just the exit code.
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
	if filepath.Clean(env.Dir) != "." {
		opts.Dir = env.Dir
	}
	for _, name := range env.VarFiles {
		content, err := wholefile.Read(env.stop, name, largestText)
		if err != nil {
			return nil, view.Faults{}, fmt.Errorf("--var-file: %w", err)
		}
		opts.VarFiles = append(opts.VarFiles, load.VarFile{Name: name, Content: content})
	}
	info, err := os.Stat(env.Dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: env.Dir, Err: errors.New("not a directory")}
	}
	if err != nil {
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
	var at atomic.Pointer[string] // the expression that is evaluated
	opts.Evaluating = func(place string) { at.Store(&place) }
	if how.added.name != "" {
		files = withFile{files, how.added}
	}
	type loaded struct {
		config *fleet.Config
		faults view.Faults
	}
	limit := cmp.Or(env.reading, ordinary)
	done, err := within(env.stop, limit, func() (loaded, error) {
		result, diags := load.Dir(files, opts)
		return loaded{result.Config, view.Faults{Files: result.Files, Diags: diags, Ends: result.Ends}}, nil
	})
	if err != nil {
		place := ""
		if p := at.Load(); p != nil {
			place = *p
		}
		return nil, view.Faults{}, fmt.Errorf("the configuration: %w", limit.explain(err, place))
	}
	return done.config, done.faults, nil
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
		env.remarks(ctx, config, o.NoSecrets, &faults)
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

// remarks adds artifacts whose files or versions are not those that were locked, and ignore blocks without effect.
// A plan finds only files that it would send, and drift finds such blocks only later.
func (env *Env) remarks(ctx context.Context, config *fleet.Config, inside bool, faults *view.Faults) {
	store := env.artifactStore(nil)
	for _, of := range config.Artifacts {
		if version, known := store.VersionOf(of.SHA256); known && version != of.Version && fleet.IsURL(of.Source) {
			faults.Warn("", "Digest of another version", fmt.Sprintf("The sha256 of artifact %q was locked for version %s, and its version is now %s. "+
				"Run macfleet artifacts lock --update %[1]s.", of.Name, version, of.Version))
		}
		if inside && !fleet.IsURL(of.Source) && !env.holds(of.Source) {
			faults.Warn("", "Artifact file not compared", of.String()+": "+of.Source+" is outside the configuration directory.")
			continue
		}
		if err := store.Unchanged(ctx, of); err != nil {
			faults.Add("Artifact file differs from its lock", err.Error()+".")
		}
	}
	if _, err := config.RunnerScopes(); err != nil {
		faults.Add("Different credentials of one scope", err.Error()+".")
	}
	for _, i := range config.Ignores {
		if r, ok := drift.RemarkOn(i, env.Now()); ok {
			faults.Warn(i.Name, "Ignore has no effect ("+r.Code.String()+")", strings.Replace(r.Text+".", "?.", "?", 1))
		}
	}
}

// holds reports whether a path leads, also through links, to something in the configuration's folder or to nothing.
func (env *Env) holds(path string) bool {
	root, err := os.OpenRoot(env.Dir)
	if err != nil {
		return false
	}
	defer root.Close()
	_, err = root.Stat(filepath.FromSlash(path))
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// largestText is how many bytes of a file are read to lay it out: more than a configuration's may have.
const largestText = 16 << 20

// standardInput is what stands for it among file names.
const standardInput = "-"

// FormatOptions are the flags of fmt.
type FormatOptions struct {
	Check       bool // write nothing
	Annotations Annotations
}

// Format lays out files. A fault of one does not keep it from the others.
func Format(env *Env, o FormatOptions) error {
	if err := o.Annotations.check(); err != nil {
		return err
	}
	names := env.Args
	if len(names) == 0 {
		var err error
		if names, err = env.configFiles(); err != nil {
			return err
		}
	}
	faulty := false
	var different []string
	for _, name := range names {
		changed, err := env.formatOne(name, o.Check)
		if errors.Is(err, errTooLong) || errors.Is(err, errTooMuch) {
			return err // it still runs, so no other file is started
		}
		if err != nil {
			faulty = true
			if !errors.Is(err, exit(ExitError)) { // those are shown already
				env.errText().Error(err)
			}
		}
		if changed {
			different = append(different, name)
		}
	}
	if err := o.Annotations.print(env, func(dir string) error { return env.layoutNotes(dir, different) }); err != nil {
		return err
	}
	if faulty {
		return exit(ExitError)
	}
	return result(o.Check && len(different) > 0, true)
}

// layoutNotes prints notes on files that are not laid out. They are named from here, and
// the notes name them from the configuration's folder in the repository.
func (env *Env) layoutNotes(dir string, names []string) error {
	for i, name := range names {
		below, err := filepath.Rel(env.Dir, name)
		if err != nil {
			return fmt.Errorf("--annotations: %w", err)
		}
		names[i] = filepath.ToSlash(filepath.Join(filepath.FromSlash(dir), below))
	}
	return view.GitHubLayout(env.Err, names)
}

// configFiles returns the paths of the configuration's files.
func (env *Env) configFiles() ([]string, error) {
	names, err := load.FileNames(os.DirFS(env.Dir))
	if err != nil {
		return nil, fmt.Errorf("read the configuration in %s: %w; name its directory with -C", env.Dir, err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no *.fleet.hcl file; name the configuration's directory with -C", env.Dir)
	}
	for i, name := range names {
		names[i] = filepath.Join(env.Dir, name)
	}
	return names, nil
}

// formatOne lays out one file, and reports whether that changes it.
func (env *Env) formatOne(name string, check bool) (changed bool, err error) {
	before, err := env.readText(name)
	if err != nil {
		return false, err
	}
	type formatted struct {
		text   []byte
		faults view.Faults
	}
	limit := cmp.Or(env.reading, ordinary)
	done, err := within(env.stop, limit, func() (formatted, error) {
		text, diags := load.Format(name, before)
		return formatted{text, view.Faults{Diags: diags}}, nil
	})
	if err != nil {
		return false, fmt.Errorf("format %s: %w", name, limit.explain(err, ""))
	}
	after := done.text
	if done.faults.Diags.HasErrors() {
		if err := env.errText().Diagnostics(load.Files(name, before), done.faults.Diags); err != nil {
			return false, err
		}
		return false, exit(ExitError)
	}
	changed = !bytes.Equal(before, after)
	switch {
	case name == standardInput && !check:
		env.outText().Print(string(after))
		return changed, nil
	case !changed:
		return false, nil
	case !check:
		if err := rewrite(name, after); err != nil {
			return true, err
		}
	}
	env.outText().Print(name + "\n")
	return true, nil
}

func (env *Env) readText(name string) ([]byte, error) {
	if name == standardInput {
		return env.readInput()
	}
	switch info, err := os.Stat(name); {
	case err != nil: // reading it says why
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory; name its files, or choose it with -C %s", name, name)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file (%s)", name, info.Mode().Type())
	}
	text, err := wholefile.Read(env.stop, name, largestText)
	if err != nil {
		return nil, fmt.Errorf("read a file to format: %w", err)
	}
	return text, nil
}

// readInput reads standard input to its end.
func (env *Env) readInput() ([]byte, error) {
	text, err := within(env.stop, bounds{}, func() ([]byte, error) { return io.ReadAll(io.LimitReader(env.In, largestText+1)) })
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	return text, refuse(len(text) > largestText, "standard input is larger than %d bytes", largestText)
}

// rewrite gives an existing file another text, so that a reader sees the old or
// the new one whole. The file keeps its mode, and a symbolic link stays one.
func rewrite(name string, text []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w; it was not changed", name, err)
		}
	}()
	target, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	// A rename would also replace what is protected against writing.
	old, err := os.OpenFile(target, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	info, err := old.Stat()
	if err = errors.Join(err, old.Close()); err != nil {
		return err
	}
	return wholefile.Replace(target, info.Mode().Perm(), wholefile.Text(text))
}
