package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// budgets are the limits of .ci/budget, by unit and name. The name * is for everything without a row.
type budgets map[string]map[string]float64

func readBudgets(text string) (budgets, error) {
	all := make(budgets)
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if len(words) != 3 {
			return nil, fmt.Errorf(".ci/budget: %q is not NAME LIMIT UNIT", strings.TrimSpace(line))
		}
		limit, err := strconv.ParseFloat(words[1], 64)
		if err != nil || limit <= 0 {
			return nil, fmt.Errorf(".ci/budget: the limit of %q is not a number", strings.TrimSpace(line))
		}
		if all[words[2]] == nil {
			all[words[2]] = make(map[string]float64)
		}
		if all[words[2]][words[0]] != 0 {
			return nil, fmt.Errorf(".ci/budget: %s has two limits in %s", words[0], words[2])
		}
		all[words[2]][words[0]] = limit
	}
	return all, nil
}

// limit returns the limit of a name.
func (b budgets) limit(unit, name string) float64 { return cmp.Or(b[unit][name], b[unit]["*"]) }

// measured runs a test's program, and appends its package and its CPU and wall seconds to a file.
func measured(args []string, to string) (code int, err error) {
	began := time.Now()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	quits := make(chan os.Signal, 1)
	signal.Notify(quits, syscall.SIGQUIT) // go test ends a test that hangs
	go func() {
		for range quits {
			_ = cmd.Process.Signal(syscall.SIGQUIT) // it may just have ended
		}
	}()
	err = cmd.Wait()
	signal.Stop(quits)
	close(quits)
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return 1, err
	}
	code = max(cmd.ProcessState.ExitCode(), 0)
	if code == 0 && err != nil {
		code = 1 // by a signal
	}
	if to == "" {
		return code, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return 1, err
	}
	return code, note(to, fmt.Sprintf("%s %.1f %.1f\n", packageIn(dir), (cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()).Seconds(), time.Since(began).Seconds()))
}

// packageIn returns the folder of a package relative to the root of its module.
func packageIn(dir string) string {
	for root := dir; root != filepath.Dir(root); root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			rel, _ := filepath.Rel(root, dir) // both are absolute
			return filepath.ToSlash(rel)
		}
	}
	return dir
}

func note(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

// cost is what a package's tests or a part of the checks took.
type cost struct {
	name      string
	cpu, wall float64
}

// billed prints the ten dearest packages of a file, and what is over its budget. The exit code is 1
// when something is over it by half.
func billed(w io.Writer, file string) (code int, err error) {
	noted, err := os.ReadFile(file)
	if err != nil {
		return 1, err
	}
	text, err := os.ReadFile(filepath.Join(".ci", "budget"))
	if err != nil {
		return 1, err
	}
	limits, err := readBudgets(string(text))
	if err != nil {
		return 1, err
	}
	costs, err := readCosts(string(noted))
	if err != nil {
		return 1, err
	}
	return bill(w, costs, limits), nil
}

func readCosts(text string) (all []cost, err error) {
	for line := range strings.Lines(text) {
		var c cost
		if _, err := fmt.Sscanf(line, "%s %f %f", &c.name, &c.cpu, &c.wall); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b cost) int { return cmp.Compare(b.cpu, a.cpu) })
	return all, nil
}

func bill(w io.Writer, costs []cost, limits budgets) (code int) {
	var over []string
	fmt.Fprintf(w, "%-28s %7s %7s %7s\n", "the ten dearest packages", "CPU s", "wall s", "budget")
	shown := 0
	for _, c := range costs {
		limit := limits.limit("cpu-seconds", c.name)
		if shown < 10 && !strings.HasPrefix(c.name, "part:") {
			shown++
			fmt.Fprintf(w, "%-28s %7.0f %7.0f %7.0f\n", c.name, c.cpu, c.wall, limit)
		}
		switch {
		case c.cpu > 1.5*limit:
			over = append(over, fmt.Sprintf("FAILED: %s took %.0f CPU seconds, over its budget of %.0f by more than half", c.name, c.cpu, limit))
			code = 1
		case c.cpu > 1.1*limit:
			over = append(over, fmt.Sprintf("warning: %s took %.0f CPU seconds; its budget is %.0f (.ci/budget)", c.name, c.cpu, limit))
		}
	}
	for _, line := range over {
		fmt.Fprintln(w, line)
	}
	return code
}
