package hosts

import (
	"flag"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/internal/scriptlint"
	"github.com/macfleet/macfleet/plan"
)

var update = flag.Bool("update", false, "write what is got into the golden files")

// TestCommandLineGolden pins the exact bytes that a host is sent. Anyone who changes
// them checks every shell they go through.
func TestCommandLineGolden(t *testing.T) {
	t.Parallel()
	got, err := commandLine("", DefaultPrologue, []question{
		{id: "power.settings", Command: plan.Command{Name: "settings", Script: "pmset -g custom\n", As: plan.Root}},
		{id: "user.shell", Command: plan.Command{Name: "shell", Script: "printf '%s' \"it's $1 and $2\"", As: plan.Login,
			Args: []string{"acme's", "$(secret)"}}},
	})
	must(t, err)
	if strings.Contains(got, "acme") || strings.Contains(got, "secret") {
		t.Error("an argument is in the command line; arguments travel only on stdin")
	}
	golden := filepath.Join("testdata", "command-line.golden")
	if *update {
		must(t, os.WriteFile(golden, []byte(got), 0o600))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("command line (-want +got), write it again with -update:\n%s", diff)
	}
}

// TestCommandLineIsTheSameForEveryHost: values are data, so only their number
// shows.
func TestCommandLineIsTheSameForEveryHost(t *testing.T) {
	t.Parallel()
	line := func(args ...string) string {
		text, err := commandLine("", DefaultPrologue, []question{{id: "a.b", Command: plan.Command{Script: "echo", As: plan.Root, Args: args}}})
		must(t, err)
		return text
	}
	if line("acme-1", "x") != line("acme-2", "$(y)'") {
		t.Error("the values of arguments change the command line")
	}
	if line("acme-1") == line("acme-1", "x") {
		t.Error("the number of arguments does not stand in the command line")
	}
}

func TestCommandLineRefusesTooMuch(t *testing.T) {
	t.Parallel()
	long := []question{{id: "a.b", Command: plan.Command{Script: strings.Repeat("x", maxScript), As: plan.Root}}}
	if text, err := commandLine("", DefaultPrologue, long); err == nil {
		t.Errorf("a script of %d bytes was taken: line of %d bytes", maxScript, len(text))
	}
}

func TestData(t *testing.T) {
	t.Parallel()
	asks := func(args ...string) question {
		return question{id: "a.b", Command: plan.Command{Name: "shell", As: plan.Login, Args: args}}
	}
	tests := []struct {
		name      string
		user      string
		questions []question
		want      string
		err       string
	}{
		{"no questions", "acme", nil, "MARK\nacme\n7\n", ""},
		{"no arguments", "acme", []question{asks(), asks()}, "MARK\nacme\n7\n", ""},
		{"an empty argument", "acme", []question{asks("")}, "MARK\nacme\n7\n0\n", ""},
		{"bytes are counted, not letters", "acme", []question{asks("größe")}, "MARK\nacme\n7\n7\ngröße", ""},
		{"line breaks are data", "acme", []question{asks("a\nb\n"), asks("c", "1\n")}, "MARK\nacme\n7\n4\na\nb\n1\nc2\n1\n", ""},
		{"NUL in an argument", "acme", []question{asks("a\x00b")}, "", "an argument of shell contains a NUL byte"},
		{"line break in the user", "acme\nroot", nil, "", "line break"},
		{"NUL in the user", "acme\x00", nil, "", "the login user"},
	}
	for _, tt := range tests {
		got, err := data("MARK", tt.user, 7, tt.questions)
		if got != tt.want {
			t.Errorf("%s: data = %q, want %q", tt.name, got, tt.want)
		}
		if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: error = %v, want one with %q", tt.name, err, tt.err)
		}
	}
}

func TestDataErrorHidesTheArgument(t *testing.T) {
	t.Parallel()
	_, err := data("MARK", "acme", 1, []question{{id: "a.b", Command: plan.Command{Name: "token", Args: []string{"sesame\x00"}}}})
	if err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("error = %v, want one without the argument, which may be a secret", err)
	}
}

// TestScriptsAreSound runs the lint over all scripts that this package sends.
// A script in neither list is a fault of this test.
func TestScriptsAreSound(t *testing.T) {
	t.Parallel()
	kinds := map[string]scriptlint.Kind{
		"file.sh": scriptlint.Probe, "left.sh": scriptlint.Probe, "jobs.sh": scriptlint.Probe, "password-check.sh": scriptlint.Change,
		"keys-look.sh": scriptlint.Probe, "key-add.sh": scriptlint.Change, "key-drop.sh": scriptlint.Change, "serial.sh": scriptlint.Probe, "os-version.sh": scriptlint.Probe,
		"claim-create.sh": scriptlint.Change, "claim-drop.sh": scriptlint.Change, "marker-write.sh": scriptlint.Change,
		"undo-arm.sh": scriptlint.Change, "undo-change.sh": scriptlint.Change, "undo-confirm.sh": scriptlint.Change, "undo-drop.sh": scriptlint.Change,
		"undo-now.sh": scriptlint.Change, "undo-run.sh": scriptlint.Change, "undo-state.sh": scriptlint.Probe, "artifact-look.sh": scriptlint.Probe, "artifact-push.sh": scriptlint.Change,
		"artifact-fetch.sh": scriptlint.Change, "artifact-prune.sh": scriptlint.Change,
		"job.sh": scriptlint.Change, "job-drop.sh": scriptlint.Change, "job-gui.sh": scriptlint.Change, "job-look.sh": scriptlint.Change,
		"boot.sh": scriptlint.Probe, "restart.sh": scriptlint.Change, "job-run.sh": scriptlint.Change, "job-start.sh": scriptlint.Change, "fence.sh": scriptlint.Change, "leave.sh": scriptlint.Change,
	}
	names, err := fs.Glob(files, "scripts/*")
	must(t, err)
	if len(names) != len(kinds) {
		t.Errorf("scripts are %q, this test knows %d", names, len(kinds))
	}
	for _, name := range names {
		kind, known := kinds[path.Base(name)]
		if !known {
			t.Errorf("%s: say here whether it is a probe or a change", name)
		}
		text := file(name)
		switch path.Base(name) {
		case "job-drop.sh", "job-gui.sh", "job-look.sh", "job-start.sh":
			text = file("scripts/job.sh") + text // where their functions are
		}
		for _, fault := range scriptlint.Check(name, text, kind) {
			t.Error(fault)
		}
	}
}

// TestIdentityAsksOnlyByProbes keeps the scripts of changes out of every
// observation, and asks nothing twice.
func TestIdentityAsksOnlyByProbes(t *testing.T) {
	t.Parallel()
	var ids []string
	for _, q := range identity() {
		ids = append(ids, q.id)
		for _, fault := range scriptlint.Check(q.Name, q.Script, scriptlint.Probe) {
			t.Error(fault)
		}
	}
	want := []string{"host.marker", "host.claim", "host.serial", "host.os-version", "host.left", "host.jobs"}
	if !slices.Equal(ids, want) {
		t.Errorf("identity asks %q, want %q", ids, want)
	}
}
