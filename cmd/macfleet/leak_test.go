package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// keyline VARIABLE FILE sets a variable to a line from the middle of the private
// key among a world's secrets.
func keyline(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: keyline VARIABLE FILE REFERENCE")
	}
	var secrets map[string]string
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &secrets))
	lines := strings.Split(secrets[args[2]], "\n")
	if len(lines) <= 4 {
		ts.Fatalf("%s holds no key %s", args[1], args[2])
	}
	ts.Setenv(args[0], lines[2])
}

// rename OLD NEW gives a simulated server another name.
func rename(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: rename OLD NEW")
	}
	files, err := filepath.Glob(filepath.Join(ts.Getenv("MACFLEET_SANDBOX"), "scaleway", "servers", "*.json"))
	ts.Check(err)
	for _, f := range files {
		if text := ts.ReadFile(f); strings.Contains(text, `"`+args[0]+`"`) {
			ts.Check(os.WriteFile(f, []byte(strings.Replace(text, `"`+args[0]+`"`, `"`+args[1]+`"`, 1)), 0o644))
			return
		}
	}
	ts.Fatalf("no server is called %s", args[0])
}

// leaks checks that no planted secret is in the last output, in a file that was made outside
// the world, or in its pins, records and logs.
func leaks(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: leaks")
	}
	for _, planted := range []string{ts.Getenv("KEYLINE"), "Sentinel", "sentin", "U2VudGluZWxTaWduYXR1cmU", "5eed0000-0000-4000-8000-000000000004"} {
		places := []string{"stdout", "stderr", filepath.Join(ts.Getenv("MACFLEET_SANDBOX"), "known_hosts")}
		for _, f := range []string{"record.json", "recorded.json"} {
			if _, err := os.Stat(ts.MkAbs(f)); err == nil {
				places = append(places, f)
			}
		}
		for _, kept := range []string{"runs", "logs"} {
			files, err := filepath.Glob(filepath.Join(ts.Getenv("MACFLEET_SANDBOX"), kept, "*"))
			ts.Check(err)
			if len(files) == 0 {
				ts.Fatalf("the world has no %s", kept)
			}
			places = append(places, files...)
		}
		absent(ts, false, append([]string{planted}, places...))
	}
}
