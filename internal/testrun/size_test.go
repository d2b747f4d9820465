package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/macfleet/macfleet/internal/gosource"
)

// TestSizes compares this tree with .ci/budget.
func TestSizes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../.ci/budget")
	if err != nil {
		t.Fatal(err)
	}
	limits, err := readBudgets(string(text))
	if err != nil {
		t.Fatal(err)
	}
	files, err := gosource.Read("../..")
	if err != nil {
		t.Fatal(err)
	}
	all, err := sizes("../..", files)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range over(all, limits) {
		t.Error(fault)
	}
}

// TestSizesOfATree measures a small tree.
func TestSizesOfATree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"p.go": `package p

type T[K any] struct {
	a, b int
	c    int
}

func (t *T[K]) one() {}
func (T[K]) two(x int) bool {
	for x > 0 || x < -1 {
		switch x {
		case 1, 2:
		default:
			return x > 3 && x < 5
		}
	}
	return false
}
`, "p_test.go": "package p\n\nvar x = 1\n"} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := gosource.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := sizes(dir, files)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []size{{".", "lines", 16, "."}, {"tests", "lines", 3, "tests"}, {"struct", "fields", 3, "..T"}, {"type", "methods", 2, "..T"}, {"function", "branches", 5, "..two"}} {
		if !slices.Contains(all, want) {
			t.Errorf("%+v is not in %+v", want, all)
		}
	}
	limits, err := readBudgets("# limits\n\n. 14 lines\n* 3 lines\ngone 1 lines\nstruct 2 fields\ntype 2 methods\nfunction 5 branches\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{". has 16 lines: .ci/budget allows 14", "..T has 3 fields: .ci/budget allows 2", ".ci/budget limits the lines of gone, which does not exist"}
	if got := over(all, limits); !slices.Equal(got, want) {
		t.Errorf("over: %q", got)
	}
	for _, bad := range []string{"a 1", "a x lines", "a 0 lines", "a 1 lines\na 2 lines"} {
		if _, err := readBudgets(bad); err == nil {
			t.Errorf("%q is a budget", bad)
		}
	}
}

// TestBill: 10 % over a budget is a warning and 50 % over fails; the ten dearest are shown.
func TestBill(t *testing.T) {
	t.Parallel()
	limits := budgets{"cpu-seconds": {"a": 100, "*": 10}}
	for _, tc := range []struct {
		costs string
		code  int
		says  string
	}{
		{"a 110 60\nb 11 5\n", 0, ""},
		{"a 111 60\nb 1.5 5\n", 0, "warning: a took 111 CPU seconds; its budget is 100 (.ci/budget)\n"},
		{"b 15.6 5\n", 1, "FAILED: b took 16 CPU seconds, over its budget of 10 by more than half\n"},
	} {
		costs, err := readCosts(tc.costs)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if code := bill(&out, costs, limits); code != tc.code || !strings.HasSuffix(out.String(), tc.says) || tc.says == "" && strings.Contains(out.String(), "budget of") {
			t.Errorf("%q: exit %d\n%s", tc.costs, code, out.String())
		}
	}
	costs, err := readCosts(strings.Repeat("c 1 1\n", 12) + "part:test 9 9\na 50 7\n")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	bill(&out, costs, limits)
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 11 || strings.Join(strings.Fields(lines[1]), " ") != "a 50 7 100" {
		t.Errorf("%q", lines)
	}
}

// TestMeasured runs a program that takes CPU time and fails: its code and its cost are kept.
func TestMeasured(t *testing.T) {
	t.Parallel()
	to := t.TempDir() + "/costs"
	for script, want := range map[string]int{"exit 7": 7, "kill -9 $$": 1, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done": 0} {
		if code, err := measured([]string{"sh", "-c", script}, to); code != want || err != nil {
			t.Errorf("%s: exit %d, want %d, %v", script, code, want, err)
		}
	}
	text, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	costs, err := readCosts(string(text))
	if err != nil || len(costs) != 3 || costs[0].name != "internal/testrun" || costs[0].cpu == 0 {
		t.Errorf("%+v, %v", costs, err)
	}
}
