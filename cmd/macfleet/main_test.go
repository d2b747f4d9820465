package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/macfleet/macfleet/internal/app"
	"github.com/macfleet/macfleet/internal/sandbox"
	"github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/internal/secret"
)

func TestMain(m *testing.M) {
	secret.CheapSeals()
	// Under the race detector every program sleeps for a second before it exits, to write
	// its report. Hundreds of programs run here.
	if err := os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=20")); err != nil {
		panic(err)
	}
	// The programs here are short, and machines have memory: with GOGC=400 a tenth of their time was garbage collection.
	debug.SetGCPercent(1600)
	debug.SetMemoryLimit(768 << 20)
	// Some tests wait, for a lock, a deadline or a Node: with twice as many as processors these were idle for half of the
	// time (233 s, with four times as many 150 s). -parallel N counts, where it is given.
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	testscript.Main(tested{m}, map[string]func(){
		"macfleet-worker": work,
		"macfleet": func() {
			os.Exit(run(context.Background(), os.Args[1:], app.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
		},
	})
}

// TestScripts runs the real main on simulated worlds. Every script has the
// example configuration in its directory and a separate world.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			newRunner(env)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("MACFLEET_ENVIRONMENT", "production")
			env.Setenv("MACFLEET_SANDBOX", filepath.Join(env.WorkDir, "world"))
			env.Setenv("GORACE", os.Getenv("GORACE"))
			env.Setenv(mac.AnswersVariable, os.Getenv(mac.AnswersVariable))
			examples, err := filepath.Abs("../../examples")
			if err != nil {
				return err
			}
			env.Setenv("EXAMPLES", examples)
			return copyExample(env.WorkDir)
		},
		Condition: func(c string) (bool, error) {
			if c != "ci" {
				return false, fmt.Errorf("there is no condition %q", c)
			}
			return os.Getenv("CI") != "", nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":       code,
			"process":    asProcess,
			"member":     member,
			"scraped":    scraped,
			"requests":   requests,
			"schema":     schema,
			"recorded":   recorded,
			"lastrecord": lastrecord,
			"keyline":    keyline,
			"rename":     rename,
			"leaks":      leaks,
			"completes":  completes,
			"replace":    replaceText,
			"day":        dayFromNow,
			"wrongtries": wrongTries,
			"secretof":   secretof,
			"reseal":     reseal,
			"shows":      shows,
			"arm":        arm,
			"addsecret":  addsecret,
			"doprinted":  doPrinted,

			"nopasswords": nopasswords,
			"world":       world,
			"applies":     applies,
		},
	})
}

func copyExample(dir string) error {
	files, err := filepath.Glob("testdata/plain/*.fleet.hcl")
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(f)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// member VARIABLE FLEET N sets a variable to the name of a fleet's Nth member,
// counted from 1, and VARIABLE_ROOT to the folder of its file system.
func member(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: member VARIABLE FLEET N")
	}
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	names := strings.Fields(done(ts, "hosts", "-o", "name", "--on", "fleet="+args[1]))
	if n < 1 || n > len(names) {
		ts.Fatalf("fleet %s has %d members", args[1], len(names))
	}
	ts.Setenv(args[0], names[n-1])
	ts.Setenv(args[0]+"_SHORT", args[1]+"/"+names[n-1][len(names[n-1])-5:])
	ts.Setenv(args[0]+"_ROOT", strings.TrimSpace(done(ts, "sandbox", "path", names[n-1])))
}

// scraped NAME PORT... reads the metrics of a host over the tailnet, and checks that no other address serves them.
func scraped(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: scraped NAME PORT...")
	}
	w, err := sandbox.Open(ts.Getenv("MACFLEET_SANDBOX"), sandbox.Seed{})
	ts.Check(err)
	defer w.Close() // its files are complete
	m, err := w.Mac(args[0])
	ts.Check(err)
	s, err := m.Tailscale()
	if err != nil && !neg {
		ts.Fatalf("%v", err)
	}
	for _, port := range args[1:] {
		text, err := m.Metrics(net.JoinHostPort(s.Address, port))
		if got := err == nil && strings.Contains(text, args[0]); got == neg {
			ts.Fatalf("%s of %s: %v\n%s", port, args[0], err, text)
		}
		if _, err := m.Metrics(net.JoinHostPort("", port)); err == nil && !neg {
			ts.Fatalf("the public address serves port %s of %s", port, args[0])
		}
	}
}

// requests reset clears the world's log of requests; requests N PATTERN checks how
// many of its lines match.
func requests(ts *testscript.TestScript, neg bool, args []string) {
	log := filepath.Join(ts.Getenv("MACFLEET_SANDBOX"), "access.log")
	if len(args) == 1 && args[0] == "reset" {
		ts.Check(os.Truncate(log, 0))
		return
	}
	if neg || len(args) != 2 {
		ts.Fatalf("usage: requests reset | requests N PATTERN")
	}
	wanted, err := strconv.Atoi(args[0])
	ts.Check(err)
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	text, err := os.ReadFile(log)
	ts.Check(err)
	got := 0
	for line := range strings.Lines(string(text)) {
		if pattern.MatchString(line) {
			got++
		}
	}
	if got != wanted {
		ts.Fatalf("%d requests match %s, wanted %d:\n%s", got, args[1], wanted, text)
	}
}

// TestWatchdogs compares the watchdog that hosts run with the one that the simulator
// models: the two must not share code, and must not differ.
func TestWatchdogs(t *testing.T) {
	t.Parallel()
	ours, err := os.ReadFile("../../hosts/watchdog.pl")
	must(t, err)
	theirs, err := os.ReadFile("../../internal/sandbox/mac/watchdog.pl")
	must(t, err)
	equal(t, string(ours), string(theirs), "hosts/watchdog.pl")
}

// must ends the test at the first error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func equal[T comparable](t testing.TB, got, want T, what ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%v\n got %#v\nwant %#v", what, got, want)
	}
}

func has(t testing.TB, text, part string, what ...any) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%v: %q is not in\n%s", what, part, text)
	}
}
