// Package conformance is the table of how the tools of macOS behave: one row a
// behaviour, with what it prints, how it ends and who says so. The simulator,
// the shells of this machine and a real Mac answer the same rows. The package
// is data and its reader; it runs nothing and imports nothing of the simulator,
// so that the two cannot share a bug.
package conformance

import "slices"

// Needs says which systems can answer a row.
type Needs string

// The systems that a row may need.
const (
	POSIX Needs = "POSIX" // any POSIX system with perl, GNU's tools included
	MacOS Needs = "macOS"
)

// Changes says what a row leaves behind.
type Changes string

// What a row may change.
const (
	Nothing  Changes = "nothing"
	Files    Changes = "files"    // in its own folder, which goes away with it
	Settings Changes = "settings" // of the whole machine: such a row runs in the simulator alone
)

// User is whom a row runs as.
type User string

// The users a row may ask for.
const (
	Login User = "user" // the login user of a Mac; whoever runs the tests elsewhere
	Root  User = "root"
)

// Row is one behaviour of one tool.
type Row struct {
	Tool    string
	Name    string // what it shows; unique for its tool
	Script  string // POSIX sh
	Args    []string
	If      string // a script that fails where the row says nothing of the machine; empty = it always does
	Who     User
	Answers []Answer // accepted, at least one; more than one where the sources leave a doubt
	Source  string   // who says so, as somebody outside would look it up
	Changes Changes
	Needs   Needs
	Gap     string // what the simulator lacks for it: it must refuse the row loudly; empty = it answers
	Since   string // the first macOS version that behaves so; empty = all that macfleet knows
	File    string // where it stands, "pmset.conf:12"
}

// ID names the row among all rows.
func (r Row) ID() string { return r.Tool + ": " + r.Name }

// Answer is one accepted answer to a row.
type Answer struct {
	Exit           Exit
	Stdout, Stderr Stream
	Doubt          string // why there is another accepted answer; empty for the first
}

// Exit is the exit codes that an answer accepts.
type Exit struct {
	Codes   []int
	Failure bool // any code but 0
}

// Fits reports whether code is one of them.
func (e Exit) Fits(code int) bool { return e.Failure && code != 0 || slices.Contains(e.Codes, code) }

// Result is what a machine answered to a row.
type Result struct {
	Exit           int
	Stdout, Stderr string
}

// Fits reports whether a result is one of the accepted answers.
func (r Row) Fits(got Result) bool {
	return slices.ContainsFunc(r.Answers, func(a Answer) bool {
		return a.Exit.Fits(got.Exit) && a.Stdout.Fits(got.Stdout) && a.Stderr.Fits(got.Stderr)
	})
}
