package main

import (
	"errors"
	"os/exec"
	"reflect"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// runner runs macfleet's commands for one script.
type runner struct{ worker *worker }

type runnerKey struct{}

// newRunner gives a script its runner, and ends that with it.
func newRunner(env *testscript.Env) {
	r := &runner{}
	env.Values[runnerKey{}] = r
	env.Defer(func() {
		if r.worker == nil {
			return
		}
		if err := r.worker.end(); err != nil {
			env.T().Fatal(err)
		}
	})
}

// macfleet runs a command in the script's worker. What it prints is the output of the script's command.
func macfleet(ts *testscript.TestScript, args ...string) answer {
	script := reflect.ValueOf(ts).Elem() // testscript gives these only to processes
	if script.FieldByName("stdin").Len()+script.FieldByName("ttyin").Len() > 0 {
		ts.Fatalf("a worker reads no input: use process instead of code")
	}
	t := task{Args: args, Dir: ts.MkAbs("."), Env: []string{"PWD=" + ts.MkAbs(".")}}
	for i, vars := 0, script.FieldByName("env"); i < vars.Len(); i++ {
		t.Env = append(t.Env, vars.Index(i).String())
	}
	r := ts.Value(runnerKey{}).(*runner)
	var err error
	if r.worker == nil {
		r.worker, err = newWorker()
		ts.Check(err)
	}
	a, err := r.worker.run(t)
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
	if got := macfleet(ts, args...).Code; got != wanted {
		ts.Fatalf("macfleet %s: exit %d, wanted %d", strings.Join(args, " "), got, wanted)
	}
}

// process WANTED ARGS... does so in a process of its own, which has the script's terminal or input.
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
