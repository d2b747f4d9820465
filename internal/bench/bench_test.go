package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/macfleet/macfleet/internal/maintest"

	"github.com/macfleet/macfleet/internal/scripttest"
)

// TestMain makes the test binary the measured child.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == childArgument {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	maintest.Main(m)
}

// little measures next to nothing: the tests check no times.
func little(t *testing.T, rows ...string) options {
	t.Helper()
	return options{rows: rows, rounds: 1, hosts: 2, uploads: 2, simulated: 5, recorded: 40, cache: t.TempDir(), limit: time.Minute}
}

// TestMachinery runs every group once and compares the rows of the table.
func TestMachinery(t *testing.T) {
	t.Parallel()
	tests := []struct {
		group string
		want  []string
	}{
		{"ssh", []string{"ssh 2 hosts: macfleet / bare program", "macfleet", "bare", "client CPU, macfleet / bare program", "a host"}},
		{"upload", []string{"upload of 8 MB to 2 hosts: macfleet / bare program", "deliver", "cat", "client CPU, macfleet / bare program", "macfleet's throughput"}},
		{"slow", []string{"5 hosts that take a second each, 256 at once", "macfleet's own CPU a host"}},
		{"sandbox", []string{"macfleet plan, 5 simulated hosts, all steps of examples/three-fleets", "CPU a host, the simulator's left out", "memory at its peak"}},
		{"plan", []string{"plan 40 hosts x 14 steps, everything differs", "as a multiple of reading the snapshot with encoding/json", "heap at its peak, snapshot included", "80 hosts", "growth",
			"plan 40 hosts x 14 steps, nothing to do", "as a multiple of reading the snapshot with encoding/json", "heap at its peak, snapshot included", "80 hosts", "growth"}},
		{"version", []string{"macfleet version, 4 starts", "the binary"}},
	}
	for _, tt := range tests {
		t.Run(tt.group, func(t *testing.T) {
			t.Parallel()
			if tt.group == "ssh" || tt.group == "upload" {
				needServer(t)
			}
			if tt.group == "upload" && os.Geteuid() != 0 {
				scripttest.Lacking(t, "an upload needs root")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			var log bytes.Buffer
			rows, err := measure(ctx, little(t, tt.group), &log)
			if err != nil {
				t.Fatalf("%v\n%s", err, log.String())
			}
			var got []string
			for _, r := range rows {
				got = append(got, strings.TrimSpace(r.what))
				if r.figure == "" {
					t.Errorf("%q has no figure", r.what)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHost checks the budget of processes that an observation starts on a host.
func TestHost(t *testing.T) {
	t.Parallel()
	needServer(t)
	rows, err := measure(t.Context(), little(t, "host"), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].budget == "" {
		scripttest.Lacking(t, "%v", rows[0])
	}
	for _, r := range rows {
		if r.over {
			t.Errorf("%s: %s, budget %s", r.what, r.figure, r.budget)
		}
	}
}

func needServer(t *testing.T) {
	t.Helper()
	if _, err := findServer(); err != nil {
		scripttest.Lacking(t, "%v", err)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	rows := []row{judged("fast", 0.5, 1, " s"), judged("  slow", 1.26, 1.25, "x"), shown("only shown", "%d MB", 7)}
	var b bytes.Buffer
	show(&b, "Machine: a sample.", rows)
	want := `Machine: a sample.

WHAT        FIGURE  BUDGET    VERDICT
fast        0.5 s   <= 1 s    ok
  slow      1.26x   <= 1.25x  OVER
only shown  7 MB              
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for n, code := range map[int]int{0: 0, 1: 0, 2: 1, 3: 1} {
		if got := verdict(rows[:n]); got != code {
			t.Errorf("the first %d rows: exit code %d, want %d", n, got, code)
		}
	}
	if got := median([]float64{9, 1, 3}); got != 3 {
		t.Errorf("median = %g, want 3", got)
	}
	if got := median([]float64{9, 1, 3, 5}); got != 4 {
		t.Errorf("median = %g, want 4", got)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"-rows", "ssh,speed"}, 2, `unknown row "speed"`},
		{[]string{"-rounds", "0"}, 2, "at least 1"},
		{[]string{"-h"}, 0, "what to measure"},
		{[]string{"-rows", "plan", "-recorded", "40", "-limit", "1ns"}, 2, "not finished within 1ns"},
		{[]string{"child"}, 2, "read the job"},
	} {
		var log bytes.Buffer
		if code := run(t.Context(), tt.args, strings.NewReader(""), &bytes.Buffer{}, &log); code != tt.code || !strings.Contains(log.String(), tt.text) {
			t.Errorf("%v = %d, want %d and %q: %s", tt.args, code, tt.code, tt.text, log.String())
		}
	}
}
