package main

import (
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/macfleet/macfleet/internal/runcheck"
	"github.com/macfleet/macfleet/internal/runlog"
)

// lastrecord FOLDER VARIABLE sets a variable to the newest record of a folder, and
// checks that every run there kept its limits.
func lastrecord(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lastrecord FOLDER VARIABLE")
	}
	files, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*.jsonl"))
	ts.Check(err)
	if len(files) == 0 {
		ts.Fatalf("%s holds no record", args[0])
	}
	for _, file := range files {
		r, err := runlog.Read(file)
		ts.Check(err)
		if found := runcheck.Violations(r); len(found) > 0 {
			ts.Fatalf("%s breaks its limits:\n%s", file, strings.Join(found, "\n"))
		}
	}
	ts.Setenv(args[1], files[len(files)-1])
}
