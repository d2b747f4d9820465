package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
)

// simulated opens the Mac of a server as its owner would see it, past SSH.
func simulated(ts *testscript.TestScript, host string) *mac.Machine {
	ts.Check(ts.Exec("macfleet", "sandbox", "path", host))
	m, err := mac.Open(filepath.Dir(strings.TrimSpace(ts.ReadFile("stdout"))))
	ts.Check(err)
	return m
}

// wrongtries HOST N insists on how many wrong passwords a Mac has heard so far, and
// that nobody tried any while the account was locked.
func wrongTries(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: wrongtries HOST N")
	}
	wanted, err := strconv.Atoi(args[1])
	ts.Check(err)
	all, err := simulated(ts, args[0]).PasswordTries()
	ts.Check(err)
	got := 0
	for _, try := range all {
		if !try.Right || try.Locked {
			got++
		}
	}
	if got != wanted {
		ts.Fatalf("%d wrong passwords were tried on %s, wanted %d: %+v", got, args[0], wanted, all)
	}
}

// secretof HOST FILE writes the password that a Mac has now.
func secretof(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: secretof HOST FILE")
	}
	password, err := simulated(ts, args[0]).Password()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(password+"\n"), 0o600))
}

// addsecret REF FILE lets a reference of the world be found.
func addsecret(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: addsecret REF FILE")
	}
	path := filepath.Join(ts.Getenv("MACFLEET_SANDBOX"), "secrets.json")
	var all map[string]string
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(path)), &all))
	all[args[0]] = strings.TrimSuffix(ts.ReadFile(args[1]), "\n")
	text, err := json.Marshal(all)
	ts.Check(err)
	ts.Check(os.WriteFile(path, text, 0o600))
}
