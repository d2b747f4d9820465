package conformance_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/conformance"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// newMac returns a simulated Mac.
func newMac(t testing.TB, change func(*mac.Factory)) *mac.Machine {
	t.Helper()
	f := mac.Factory{Name: "acme-pool-1", Serial: "HQ2X4Y7Z91", HardwareUUID: "5B1B6C30-0000-4000-8000-0123456789AB",
		OSVersion: "26.3", OSBuild: "25D125", User: "m1", Password: "swordfish", PasswordlessSudo: true}
	change(&f)
	m, err := mac.Create(filepath.Join(t.TempDir(), "mac"), f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// quote quotes a text for the shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'" }

// simulate runs a row on a simulated Mac.
func simulate(t testing.TB, m *mac.Machine, row conformance.Row) conformance.Outcome {
	t.Helper()
	script, args := row.Command()
	line := "LC_ALL=C; export LC_ALL; /bin/sh -c " + quote(script) + " sh"
	for _, arg := range args {
		line += " " + quote(arg)
	}
	who := "m1"
	if row.Who == conformance.Root {
		who = "root"
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := m.Run(ctx, who, line)
	if err != nil {
		t.Fatalf("%s: %v", row.File, err)
	}
	return row.Judge(conformance.Result{Exit: r.Exit, Stdout: string(r.Stdout), Stderr: string(r.Stderr)})
}

// TestSimulator runs every row on simulated Macs: one as a fleet needs it and, where the row allows
// it, one whose sudo asks for a password. A row that changes settings gets a separate Mac.
func TestSimulator(t *testing.T) {
	t.Parallel()
	usual := newMac(t, func(*mac.Factory) {})
	locked := func(f *mac.Factory) { f.PasswordlessSudo = false }
	shut := newMac(t, locked)
	for _, row := range table(t) {
		t.Run(row.File, func(t *testing.T) {
			t.Parallel()
			first, second := usual, shut
			if row.Changes == conformance.Settings {
				first, second = newMac(t, func(*mac.Factory) {}), newMac(t, locked)
			}
			o := simulate(t, first, row)
			if o.NotRun != "" {
				o = simulate(t, second, row)
			}
			judge(t, o)
		})
	}
}

func judge(t *testing.T, o conformance.Outcome) {
	t.Helper()
	switch {
	case o.NotRun != "":
		t.Errorf("%s is never run: %s", o.Row.ID(), o.NotRun)
	case o.Row.Gap == "" && !o.Same:
		t.Errorf("the simulator differs\n%s", o)
	case o.Row.Gap != "" && (o.Got.Exit != exitUnmodelled || !strings.Contains(o.Got.Stderr, "not modelled")):
		t.Errorf("the simulator does not report this gap (%s): remove the gap, or make the simulator fail loudly\n%s", o.Row.Gap, o)
	}
}

// exitUnmodelled is the simulator's exit code for what it does not model.
const exitUnmodelled = 64

// TestEveryTool checks that each tool of the simulator has rows.
func TestEveryTool(t *testing.T) {
	t.Parallel()
	rows := make(map[string]int)
	for _, row := range table(t) {
		rows[row.Tool]++
	}
	for _, tool := range mac.Tools() {
		if rows[tool] < 2 {
			t.Errorf("%s has %d rows, want at least 2", tool, rows[tool])
		}
		delete(rows, tool)
	}
	for tool := range rows {
		t.Errorf("the table has rows for %s, which the simulator lacks", tool)
	}
}
