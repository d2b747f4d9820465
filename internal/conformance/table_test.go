package conformance

import (
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"
)

func parse(text string) ([]Row, error) {
	rows, _, err := parsed(text)
	return rows, err
}

func parsed(text string) ([]Row, map[string][][]string, error) {
	return read(fstest.MapFS{"table/a.conf": {Data: []byte(text)}}, func(name string) (string, bool) { return "a long text", name == "long" })
}

const sample = `# A comment.
tool: frob
source: frob(1)
needs: macOS

row: it prints
who: root
changes: files
if: true
run: frob "$1"
run: frob
arg: plain text
arg: "quoted\n"
arg: @long
exit: 1 2
out: a line
out~ [0-9]+ more
out= "the end"
err*
or: the manual leaves it open
exit: not 0

tool: other
source: other(1)
row: nothing
run: other
`

func TestRead(t *testing.T) {
	t.Parallel()
	rows, err := parse(sample)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 {
		t.Fatalf("%d rows", len(rows))
	}
	r := rows[0]
	if r.ID() != "frob: it prints" || r.File != "a.conf:6" || r.Who != Root || r.Changes != Files || r.Needs != MacOS || r.If != "true" ||
		r.Script != "frob \"$1\"\nfrob\n" || strings.Join(r.Args, "|") != "plain text|quoted\n|a long text" || len(r.Answers) != 2 {
		t.Errorf("row = %+v", r)
	}
	if o := rows[1]; o.Who != Login || o.Changes != Nothing || o.Needs != POSIX || o.Source != "other(1)" || !o.Fits(Result{}) {
		t.Errorf("the next tool's row = %+v", o)
	}
	for _, c := range []struct {
		got  Result
		fits bool
	}{
		{Result{1, "a line\n12 more\nthe end", "anything\n"}, true},
		{Result{2, "a line\n12 more\nthe end", ""}, true},
		{Result{9, "", ""}, true},
		{Result{0, "", ""}, false},
		{Result{0, "a line\n12 more\nthe end", ""}, false},
		{Result{1, "a line\n12 more\nthe end\n", ""}, false},
		{Result{1, "x\na line\n12 more\nthe end", ""}, false},
		{Result{1, "a line\nx12 more\nthe end", ""}, false},
		{Result{9, "", "a word"}, false},
	} {
		if r.Fits(c.got) != c.fits {
			t.Errorf("Fits(%+v) = %t", c.got, !c.fits)
		}
	}
}

// TestReads: a tool says which of its calls change nothing, or that none is known.
func TestReads(t *testing.T) {
	t.Parallel()
	_, reads, err := parsed("tool: a\nsource: a(1)\nreads: -s\nreads: get *\nrow: x\nrun: a\ntool: b\nreads:\ntool: c\n")
	want := map[string][][]string{"a": {{"-s"}, {"get", "*"}}, "b": {{}}}
	if err != nil || !reflect.DeepEqual(reads, want) {
		t.Errorf("reads %q, %v, want %q", reads, err, want)
	}
}

func TestReadFaults(t *testing.T) {
	t.Parallel()
	head := "tool: frob\nsource: frob(1)\n"
	for _, c := range []struct{ text, wanted string }{
		{"nonsense", "table/a.conf:1: \"nonsense\" is neither"},
		{"run: x\n", "above the first row"},
		{"out: x\n", "above the first row"},
		{"reads: x\n", "not above the first row of a tool"},
		{head + "row: a\nrun: x\nreads: x\n", "not above the first row of a tool"},
		{head + "row: a\nfrob: x\n", "unknown key \"frob\""},
		{head + "row: a\nrun~ x\n", "run takes a colon"},
		{head + "row: a\n", "lacks a tool, name, script or source"},
		{"tool: frob\nrow: a\nrun: x\n", "lacks a tool, name, script or source"},
		{head + "row: a\nrun: x\nneeds: Linux\n", "one of them is unknown"},
		{head + "row: a\nrun: x\nexit: many\n", "is not an exit code"},
		{head + "row: a\nrun: x\nout~ (\n", "pattern"},
		{head + "row: a\nrun: x\nout= x\n", "quoted text"},
		{head + "row: a\nrun: x\narg: \"x\n", "argument"},
		{head + "row: a\nrun: x\narg: @short\n", "unknown text \"short\""},
		{head + "row: a\nrun: x\nor:\n", "has no reason"},
		{head + "row: a\nrun: x\nrow: a\nrun: y\n", "have the same name, \"frob: a\""},
	} {
		if _, err := parse(c.text); err == nil || !strings.Contains(err.Error(), c.wanted) {
			t.Errorf("%q: %v, want %s", c.text, err, c.wanted)
		}
	}
}

// FuzzRead checks that any text gives rows or an error.
func FuzzRead(f *testing.F) {
	f.Add(sample)
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := parse(text)
		if err != nil {
			return
		}
		for _, r := range rows {
			_ = Outcome{Row: r}.String()
			_, _ = r.Command()
		}
	})
}

// TestExactStreams checks that bytes match only themselves.
func TestExactStreams(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		s, err := Stream{}.with(part{'=', a})
		if err != nil {
			t.Fatal(err)
		}
		if !s.Fits(a) || a != b && s.Fits(b) {
			t.Fatalf("%q: fits itself %t, fits %q %t", a, s.Fits(a), b, s.Fits(b))
		}
	})
}

func TestReport(t *testing.T) {
	t.Parallel()
	rows, err := parse(sample)
	if err != nil {
		t.Fatal(err)
	}
	got := Report("macOS \"26.3\"", []Outcome{
		rows[0].Judge(Result{Exit: 0, Stdout: "other\n"}),
		rows[1].Judge(Result{}),
		rows[1].Judge(Result{Exit: exitSkipped}),
		{Row: rows[0], NotRun: "needs root"},
	})
	want := `macOS "26.3"
1 rows as expected, 1 differ, 2 not run

frob: it prints (a.conf:6)
  run       frob "$1"
  run       frob
  argument  "plain text"
  argument  "quoted\n"
  argument  "a long text"
  expected  exit 1 or 2; stdout: "a line\n", a line like [0-9]+ more, "the end"; stderr: anything
  expected  exit not 0; stdout: nothing; stderr: nothing
  got       exit 0; stdout: "other\n"; stderr: ""
  source    frob(1)

not run:
    1  its condition is not met here:
    1  needs root
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestRows keeps the exit codes of the script around a row free.
func TestRows(t *testing.T) {
	t.Parallel()
	rows, err := Table(map[string]string{"watchdog": "a perl text"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		for _, a := range r.Answers {
			if a.Exit.Fits(exitSkipped) && !a.Exit.Failure || a.Exit.Fits(exitNoFolder) && !a.Exit.Failure {
				t.Errorf("%s: %s accepts the exit code of a row that was not run", r.File, r.ID())
			}
		}
	}
}
