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

// standIn is a folder that stands for a converged Mac.
type standIn string

// standInUser is its login user: one that every machine has, and who is not root.
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

// root stands for the Mac's root folder.
func (m standIn) root() string { return filepath.Join(string(m), "root") }

// path finds the stubs before the system's own tools.
func (m standIn) path() string {
	return filepath.Join(string(m), "tools") + ":/usr/bin:/bin:/usr/sbin:/sbin"
}

// prologue stands in front of every script in place of the one for real Macs.
func (m standIn) prologue() string {
	return "PATH=" + m.path() + "; LC_ALL=C; export PATH LC_ALL\n"
}

// here turns the paths in a command line into those of the folder.
func (m standIn) here(line string) string {
	var pairs []string
	for _, top := range []string{"/etc/", "/Library/", "/Users/", "/usr/local/", "/var/"} {
		pairs = append(pairs, top, m.root()+top)
	}
	return strings.NewReplacer(pairs...).Replace(line)
}

// exec returns what is sent to a host to put questions to the stand-in.
func (m standIn) exec(user string, probes []plan.Probe) (hosts.Exec, error) {
	return hosts.New(hosts.Options{User: user, Prologue: m.prologue()}).Exec(probes)
}

// run puts them without a connection.
func (m standIn) run(ctx context.Context, sent hosts.Exec) (string, usage, error) {
	return execute(ctx, strings.NewReader(sent.Stdin), []string{"PATH=" + m.path()}, "/bin/sh", "-c", sent.Line)
}
