package conformance

import _ "embed"

//go:embed scripts/look.sh
var lookScript string

//go:embed scripts/files.sh
var filesScript string

// Exit codes of the script around a row. No row may exit with them.
const (
	exitSkipped  = 96 // the row's condition is not met
	exitNoFolder = 97
)

// Command returns the script that runs a row on any machine, and its arguments. It runs in the root
// folder. A row that changes files gets a new folder in /tmp, which is removed at the end.
func (r Row) Command() (script string, args []string) {
	script, condition := lookScript, r.If
	if r.Changes != Nothing {
		script = filesScript
	}
	if condition == "" {
		condition = ":"
	}
	return script, append([]string{condition, r.Script}, r.Args...)
}

// Judge compares the result of Command's script with the row.
func (r Row) Judge(got Result) Outcome {
	switch {
	case got.Exit == exitSkipped:
		return Outcome{Row: r, NotRun: "its condition is not met here: " + r.If}
	case got.Exit == exitNoFolder:
		return Outcome{Row: r, NotRun: "cannot create a folder: " + got.Stderr}
	}
	return Outcome{Row: r, Got: got, Same: r.Fits(got)}
}
