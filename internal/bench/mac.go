package main

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/plan"
)

//go:embed mac.txtar
var macFiles []byte

// standIn is a folder that simulates a converged Mac.
type standIn string

// standInUser is its login user: a user that every machine has, and not root.
const standInUser = "nobody"

func writeStandIn(dir string) (standIn, error) {
	for _, f := range txtar.Parse(macFiles).Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, f.Data, 0o755); err != nil {
			return "", err
		}
	}
	return standIn(dir), os.Symlink("/usr/local/lib/tart.app/Contents/MacOS/tart", filepath.Join(dir, "root/usr/local/bin/tart"))
}

// root returns the folder that stands for the Mac's root.
func (m standIn) root() string { return filepath.Join(string(m), "root") }

// path finds the stubs before the system's own tools.
func (m standIn) path() string {
	return filepath.Join(string(m), "tools") + ":/usr/bin:/bin:/usr/sbin:/sbin"
}

// prologue replaces the start that scripts have on real Macs.
func (m standIn) prologue() string {
	return "PATH=" + m.path() + "; LC_ALL=C; export PATH LC_ALL\n"
}

// here replaces the Mac's paths in a command line with those of the folder.
func (m standIn) here(line string) string {
	var pairs []string
	for _, top := range []string{"/etc/", "/Library/", "/Users/", "/usr/local/", "/var/"} {
		pairs = append(pairs, top, m.root()+top)
	}
	return strings.NewReplacer(pairs...).Replace(line)
}

// exec returns the command that asks the stand-in a list of questions.
func (m standIn) exec(user string, probes []plan.Probe) (hosts.Exec, error) {
	return hosts.New(hosts.Options{User: user, Prologue: m.prologue()}).Exec(probes)
}

// run asks them without a connection.
func (m standIn) run(ctx context.Context, sent hosts.Exec) (string, usage, error) {
	return execute(ctx, strings.NewReader(sent.Stdin), []string{"PATH=" + m.path()}, "/bin/sh", "-c", sent.Line)
}
