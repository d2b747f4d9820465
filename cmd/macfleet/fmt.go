package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/macfleet/macfleet/fleet/load"
	"github.com/macfleet/macfleet/internal/wholefile"
)

// largestText is how many bytes of a file are read to lay it out: far more than a
// configuration's may have, which is said at its place.
const largestText = 16 << 20

// standardInput is what stands for it among file names.
const standardInput = "-"

func (a *app) fmtCmd() *cobra.Command {
	var check bool
	var notes annotations
	c := &cobra.Command{
		Use:   "fmt [FILE...]",
		Short: "Lay out the configuration's files in the one canonical way",
		Long: "fmt lays out the *.fleet.hcl files of the directory, or the FILEs that are named, and prints the names\n" +
			"of those it changed. Only spaces change. \"-\" stands for standard input, laid out to standard output.\n\n" +
			"Exit codes:\n" +
			"  0    done; --check: all are laid out so already\n" +
			"  1    a file cannot be read, parsed or written; the others are done\n" +
			"  2    --check: some would change",
		RunE: func(_ *cobra.Command, args []string) error { return a.format(args, check, notes) },
	}
	notes.flags(c)
	c.Flags().BoolVar(&check, "check", false, "write nothing; print the names of what would change and exit with 2")
	return c
}

// format lays out files. A fault of one does not keep it from the others.
func (a *app) format(names []string, check bool, notes annotations) error {
	if err := notes.check(); err != nil {
		return err
	}
	if len(names) == 0 {
		var err error
		if names, err = a.configFiles(); err != nil {
			return err
		}
	}
	faulty := false
	var different []string
	for _, name := range names {
		changed, err := a.formatOne(name, check)
		if err != nil {
			faulty = true
			if !errors.Is(err, exit(exitError)) { // those are shown already
				a.errText().Error(err)
			}
		}
		if changed {
			different = append(different, name)
		}
	}
	if notes != "" {
		if err := a.layoutNotes(different); err != nil {
			return err
		}
	}
	switch {
	case faulty:
		return exit(exitError)
	case check && len(different) > 0:
		return exit(exitDifferent)
	}
	return nil
}

// configFiles returns the paths of the configuration's files.
func (a *app) configFiles() ([]string, error) {
	names, err := load.FileNames(os.DirFS(a.dir))
	if err != nil {
		return nil, fmt.Errorf("read the configuration in %s: %w; name its directory with -C", a.dir, err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no file *.fleet.hcl; name the configuration's directory with -C", a.dir)
	}
	for i, name := range names {
		names[i] = filepath.Join(a.dir, name)
	}
	return names, nil
}

// formatOne lays out one file, and reports whether that changes it.
func (a *app) formatOne(name string, check bool) (changed bool, err error) {
	before, err := a.readText(name)
	if err != nil {
		return false, err
	}
	after, diags := load.Format(name, before)
	if diags.HasErrors() {
		if err := a.errText().Diagnostics(load.Files(name, before), diags); err != nil {
			return false, err
		}
		return false, exit(exitError)
	}
	changed = !bytes.Equal(before, after)
	switch {
	case name == standardInput && !check:
		a.outText().Print(string(after))
		return changed, nil
	case !changed:
		return false, nil
	case !check:
		if err := rewrite(name, after); err != nil {
			return true, err
		}
	}
	a.outText().Print(name + "\n")
	return true, nil
}

func (a *app) readText(name string) ([]byte, error) {
	if name == standardInput {
		text, err := io.ReadAll(a.in)
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
