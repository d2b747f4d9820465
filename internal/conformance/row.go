// Package conformance is the table of how macOS's tools behave. Each row is one behaviour: what the
// tool prints, its exit code, and the source. The rows run in the simulator, in this machine's shells
// and on a real Mac. The package is data and its reader. It runs nothing and imports nothing of the
// simulator, so that the two cannot share a bug.
package conformance

import "slices"

// Needs is the type of system that can run a row.
type Needs string

// The types of systems.
const (
	POSIX Needs = "POSIX" // any POSIX system with perl, GNU's tools included
	MacOS Needs = "macOS"
)

// Changes is what a row leaves behind.
type Changes string

// What a row may change.
const (
	Nothing  Changes = "nothing"
	Files    Changes = "files"    // in the row's temporary folder, which is removed
	Settings Changes = "settings" // of the whole machine: such a row runs only in the simulator
)

// User is the user that a row runs as.
type User string

// The users of rows.
const (
	Login User = "user" // the login user of a Mac; elsewhere the user who runs the tests
	Root  User = "root"
)

// Row is one behaviour of one tool.
type Row struct {
	Tool    string
	Name    string // what it shows; unique for its tool
	Script  string // POSIX sh
	Args    []string
	If      string // a script that fails where the row does not apply; empty: it always applies
	Who     User
	Answers []Answer // accepted answers, at least one; several where the sources are unclear
	Source  string   // where the behaviour is documented
	Changes Changes
	Needs   Needs
	Gap     string // what the simulator lacks, so that it must refuse the row loudly; empty: it supports the row
	Since   string // the first macOS version that behaves like this; empty: all supported versions
	File    string // where the row is, "pmset.conf:12"
}

// ID names the row among all rows.
func (r Row) ID() string { return r.Tool + ": " + r.Name }

// Answer is one accepted answer to a row.
type Answer struct {
	Exit           Exit
	Stdout, Stderr Stream
	Doubt          string // why there is another accepted answer; empty for the first
}

// Exit is the accepted exit codes.
type Exit struct {
	Codes   []int
	Failure bool // any code but 0
}

// Fits reports whether code is accepted.
func (e Exit) Fits(code int) bool { return e.Failure && code != 0 || slices.Contains(e.Codes, code) }

// Result is a machine's answer to a row.
type Result struct {
	Exit           int
	Stdout, Stderr string
}

// Fits reports whether a result is an accepted answer.
func (r Row) Fits(got Result) bool {
	return slices.ContainsFunc(r.Answers, func(a Answer) bool {
		return a.Exit.Fits(got.Exit) && a.Stdout.Fits(got.Stdout) && a.Stderr.Fits(got.Stderr)
	})
}
