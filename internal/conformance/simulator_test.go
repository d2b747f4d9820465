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

// quote makes one word of a text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'" }

// simulate asks a simulated Mac a row.
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

// TestSimulator asks simulated Macs every row: one as a fleet wants it and,
// where a row says nothing of that, one that wants a password. A row that
// changes settings has a Mac of its own.
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
		t.Errorf("the simulator lacks something here (%s) and does not say so: take the gap out, or make it loud\n%s", o.Row.Gap, o)
	}
}

// exitUnmodelled is how the simulator ends what it does not know.
const exitUnmodelled = 64

// TestEveryTool insists on rows for each tool that the simulator has.
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
		t.Errorf("the table has rows for %s, which the simulator does not know", tool)
	}
}
