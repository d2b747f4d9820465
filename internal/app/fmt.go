package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/macfleet/macfleet/fleet/load"
	"github.com/macfleet/macfleet/internal/view"
	"github.com/macfleet/macfleet/internal/wholefile"
)

// largestText is how many bytes of a file are read to lay it out: far more than a
// configuration's may have, which is said at its place.
const largestText = 16 << 20

// standardInput is what stands for it among file names.
const standardInput = "-"

// FormatOptions are the arguments and flags of fmt.
type FormatOptions struct {
	Files       []string // none: those of the configuration
	Check       bool     // write nothing
	Annotations Annotations
}

// Format lays out files. A fault of one does not keep it from the others.
func Format(env *Env, o FormatOptions) error {
	if err := o.Annotations.check(); err != nil {
		return err
	}
	names := o.Files
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
		return nil, fmt.Errorf("%s has no file *.fleet.hcl; name the configuration's directory with -C", env.Dir)
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
	after, diags := load.Format(name, before)
	if diags.HasErrors() {
		if err := env.errText().Diagnostics(load.Files(name, before), diags); err != nil {
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
		text, err := io.ReadAll(env.In)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return text, nil
	}
	switch info, err := os.Stat(name); {
	case err != nil: // reading it says why
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory; name its files, or choose it with -C %s", name, name)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file (%s)", name, info.Mode().Type())
	}
	text, err := readSome(name, largestText)
	if err != nil {
		return nil, fmt.Errorf("read a file to lay out: %w", err)
	}
	return text, nil
}

// rewrite gives an existing file another text, so that a reader sees the old or
// the new one whole. The file keeps its mode, and a symbolic link stays one.
func rewrite(name string, text []byte) error {
	fail := func(err error) error {
		return fmt.Errorf("write %s: %w; it is left as it was", name, err)
	}
	target, err := filepath.EvalSymlinks(name)
	if err != nil {
		return fail(err)
	}
	// A rename would also replace what is protected against writing.
	old, err := os.OpenFile(target, os.O_WRONLY, 0)
	if err != nil {
		return fail(err)
	}
	info, err := old.Stat()
	if err = errors.Join(err, old.Close()); err != nil {
		return fail(err)
	}
	if err := wholefile.Replace(target, info.Mode().Perm(), wholefile.Text(text)); err != nil {
		return fail(err)
	}
	return nil
}
