package main

import (
	"context"
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"
)

// doprinted HOST runs the command that a plan prints against another controller: on the Mac, or kubectl in the sandbox.
func doPrinted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: doprinted HOST")
	}
	found := regexp.MustCompile(`fix: (?:when its work is done, on the host: ((?s:.+?))|(kubectl (?s:.+?))); or, if both`).FindStringSubmatch(done(ts, "plan"))
	switch {
	case found == nil:
		ts.Fatalf("the plan prints no command")
	case found[2] != "":
		done(ts, "sandbox", "run", "--", "sh", "-c", found[2])
		return
	}
	m := simulated(ts, args[0])
	result, err := m.Run(context.Background(), "m1", found[1])
	ts.Check(err)
	if result.Exit != 0 {
		ts.Fatalf("%s: exit %d, %s", found[1], result.Exit, result.Stderr)
	}
}
