package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// Outcome is the result of one row on one machine.
type Outcome struct {
	Row    Row
	NotRun string // why the row was not run; the rest is then empty
	Got    Result
	Same   bool
}

// Report formats outcomes for a person: the rows that differ, each with the expected and the actual
// result, and the number of rows that were not run, by reason. about is the first line.
func Report(about string, all []Outcome) string {
	var same, differ int
	var rows, left strings.Builder
	reasons := make(map[string]int)
	for _, o := range all {
		switch {
		case o.NotRun != "":
			reasons[o.NotRun]++
		case o.Same:
			same++
		default:
			differ++
			rows.WriteString("\n" + o.String())
		}
	}
	notRun := 0
	var why []string
	for reason, n := range reasons {
		why = append(why, fmt.Sprintf("  %3d  %s\n", n, strings.TrimSpace(reason)))
		notRun += n
	}
	slices.Sort(why)
	if notRun > 0 {
		left.WriteString("\nnot run:\n" + strings.Join(why, ""))
	}
	return fmt.Sprintf("%s\n%d rows as expected, %d differ, %d not run\n", about, same, differ, notRun) + rows.String() + left.String()
}

// String returns a row with the expected and the actual result.
func (o Outcome) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)\n", o.Row.ID(), o.Row.File)
	for line := range strings.Lines(o.Row.Script) {
		fmt.Fprintf(&b, "  run       %s\n", strings.TrimSuffix(line, "\n"))
	}
	for _, arg := range o.Row.Args {
		fmt.Fprintf(&b, "  argument  %s\n", short(arg))
	}
	for _, a := range o.Row.Answers {
		fmt.Fprintf(&b, "  expected  exit %s; stdout: %s; stderr: %s\n", a.Exit, a.Stdout, a.Stderr)
	}
	fmt.Fprintf(&b, "  got       exit %d; stdout: %q; stderr: %q\n", o.Got.Exit, o.Got.Stdout, o.Got.Stderr)
	fmt.Fprintf(&b, "  source    %s\n", o.Row.Source)
	return b.String()
}

// String returns the codes for a person.
func (e Exit) String() string {
	if e.Failure {
		return "not 0"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(e.Codes), " ", " or "), "[]")
}

// short formats a text on one line.
func short(text string) string {
	if len(text) > 60 {
		return fmt.Sprintf("%q…", text[:60])
	}
	return fmt.Sprintf("%q", text)
}
