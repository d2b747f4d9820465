package main

import (
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
)

// lastrecord FOLDER VARIABLE sets a variable to the newest record of a folder.
func lastrecord(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lastrecord FOLDER VARIABLE")
	}
	files, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*.jsonl"))
	ts.Check(err)
	if len(files) == 0 {
		ts.Fatalf("%s holds no record", args[0])
	}
	ts.Setenv(args[1], files[len(files)-1])
}
