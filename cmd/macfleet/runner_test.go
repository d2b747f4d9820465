package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/macfleet/macfleet/internal/engine"
	"github.com/macfleet/macfleet/internal/runlog"
)

// appliesAtMost is how many applies of a script may change something, unless it says why it needs more. A world that
// is not what the script is about is taken as a copy, and a sentence of a plan needs no apply.
const appliesAtMost = 3

// runner runs macfleet's commands for one script, and counts its applies.
type runner struct {
	worker  *worker
	most    int
	applies []string        // command lines of those that changed something
	seen    map[string]bool // records of runs
}

type runnerKey struct{}

// newRunner gives a script its runner, and ends that with it.
func newRunner(env *testscript.Env) {
	r := &runner{most: appliesAtMost, seen: map[string]bool{}}
	env.Values[runnerKey{}] = r
	env.Defer(func() {
		if r.worker == nil {
			return
		}
		if err := r.worker.end(); err != nil {
			env.T().Fatal(err)
		}
		failed := env.T().(interface{ Failed() bool }).Failed()
		if n := len(r.applies); !failed && n < r.most && r.most > appliesAtMost {
			env.T().Fatal(fmt.Sprintf("%d applies changed something; %d were allowed", n, r.most))
		}
	})
}

func runnerOf(ts *testscript.TestScript) *runner { return ts.Value(runnerKey{}).(*runner) }

// environ returns the variables of a script, which testscript gives only to processes.
func environ(ts *testscript.TestScript) (all []string) {
	vars := reflect.ValueOf(ts).Elem().FieldByName("env")
	for i := range vars.Len() {
		all = append(all, vars.Index(i).String())
	}
	return all
}

// notice returns the new records of a world's runs.
func (r *runner) notice(world string) (records []string) {
	all, _ := filepath.Glob(filepath.Join(world, "runs", "*.jsonl")) // the pattern is valid
	for _, file := range all {
		if !r.seen[file] {
			r.seen[file], records = true, append(records, file)
		}
	}
	return records
}

// count counts the applies that changed something since the last time, also those that exec started.
func (r *runner) count(world string) error {
	for _, file := range r.notice(world) {
		run, err := runlog.Read(file)
		if err == nil && run.Head.Command == "apply" && slices.ContainsFunc(run.Entries, func(e runlog.Entry) bool { return e.Type == engine.Started }) {
			r.applies = append(r.applies, strings.Join(run.Head.Arguments, " "))
		}
	}
	if len(r.applies) > r.most {
		return fmt.Errorf("%d applies changed something, more than %d: take a prepared world (world), or say why (applies N REASON):\n%s",
			len(r.applies), r.most, strings.Join(r.applies, "\n"))
	}
	return nil
}

// TestAppliesAreCounted: an apply that changed nothing and another command do not count, and no apply counts twice.
func TestAppliesAreCounted(t *testing.T) {
	t.Parallel()
	world := t.TempDir()
	must(t, os.Mkdir(filepath.Join(world, "runs"), 0o700))
	r := &runner{most: 1, seen: map[string]bool{}}
	for i, run := range []struct {
		command string
		acted   bool
		wanted  bool
	}{{"apply", true, true}, {"apply", false, true}, {"restart", true, true}, {"apply", true, false}} {
		text := fmt.Sprintf(`{"v":1,"type":"run","time":"2026-01-01T00:00:00Z","run":{"id":"a","command":%q}}`+"\n", run.command)
		if run.acted {
			text += `{"v":1,"type":"started","time":"2026-01-01T00:00:00Z","host":"h","action":{"kind":"step","host":"h","step":"power"}}` + "\n"
		}
		must(t, os.WriteFile(filepath.Join(world, "runs", runlog.FileName(time.Unix(int64(i), 0), "a")), []byte(text), 0o600))
		if err := r.count(world); (err == nil) != run.wanted {
			t.Errorf("%+v: %v", run, err)
		}
	}
}

// applies N REASON allows a script more applies that change something.
func applies(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 || args[1] == "" {
		ts.Fatalf("usage: applies N REASON")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	if n <= appliesAtMost {
		ts.Fatalf("%d applies need no reason", n)
	}
	runnerOf(ts).most = n
}

// macfleet runs a command in the script's worker. What it prints is the output of the script's command.
func macfleet(ts *testscript.TestScript, args ...string) answer {
	script := reflect.ValueOf(ts).Elem()
	if script.FieldByName("stdin").Len()+script.FieldByName("ttyin").Len() > 0 {
		ts.Fatalf("a worker reads no input: use process instead of code")
	}
	r := runnerOf(ts)
	var err error
	if r.worker == nil {
		r.worker, err = newWorker(environ(ts))
		ts.Check(err)
	}
	a, err := r.worker.run(task{Args: args, Dir: ts.MkAbs("."), Env: append(environ(ts), "PWD="+ts.MkAbs("."))})
	if err != nil {
		r.worker = nil
		ts.Check(err)
	}
	_, _ = ts.Stdout().Write([]byte(a.Out)) // into memory
	_, _ = ts.Stderr().Write([]byte(a.Err))
	if a.Left != "" {
		ts.Fatalf("macfleet %s left behind:\n%s", strings.Join(args, " "), a.Left)
	}
	return a
}

// done runs a command that must succeed, and returns what it printed.
func done(ts *testscript.TestScript, args ...string) string {
	a := macfleet(ts, args...)
	if a.Code != 0 {
		ts.Fatalf("macfleet %s: exit %d", strings.Join(args, " "), a.Code)
	}
	return a.Out
}

// code WANTED ARGS... runs macfleet and checks its exit code.
func code(ts *testscript.TestScript, neg bool, args []string) {
	wanted, args := exitAndArgs(ts, neg, args)
	got := macfleet(ts, args...).Code
	ts.Check(runnerOf(ts).count(ts.MkAbs(ts.Getenv("MACFLEET_SANDBOX"))))
	if got != wanted {
		ts.Fatalf("macfleet %s: exit %d, wanted %d", strings.Join(args, " "), got, wanted)
	}
}

// process WANTED ARGS... does so in a new process, which has the script's terminal or input.
func asProcess(ts *testscript.TestScript, neg bool, args []string) {
	wanted, args := exitAndArgs(ts, neg, args)
	err := ts.Exec("macfleet", args...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	ts.Check(runnerOf(ts).count(ts.MkAbs(ts.Getenv("MACFLEET_SANDBOX"))))
	if got != wanted {
		ts.Fatalf("macfleet %s: exit %d, wanted %d", strings.Join(args, " "), got, wanted)
	}
}

func exitAndArgs(ts *testscript.TestScript, neg bool, args []string) (int, []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code|process EXIT ARGS...")
	}
	wanted, err := strconv.Atoi(args[0])
	ts.Check(err)
	return wanted, args[1:]
}
