package main

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/macfleet/macfleet/internal/sandbox/mac"
	"github.com/macfleet/macfleet/steps/kcpassword"
)

// simulated opens a server's Mac directly, without SSH.
func simulated(ts *testscript.TestScript, host string) *mac.Machine {
	m, err := mac.Open(filepath.Dir(strings.TrimSpace(done(ts, "sandbox", "path", host))))
	ts.Check(err)
	return m
}

// wrongtries HOST N checks how many wrong passwords were tried on a Mac, and that none
// was tried while the account was locked.
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

// secretof HOST FILE writes a Mac's current password.
func secretof(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: secretof HOST FILE")
	}
	password, err := simulated(ts, args[0]).Password()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(password+"\n"), 0o600))
}

// addsecret REF FILE adds a secret to the world.
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

// nopasswords checks that no login password of the world, in any form, is in the last
// output, in a recorded file, or in a file of a Mac other than /etc/kcpassword.
func nopasswords(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: nopasswords")
	}
	world := ts.Getenv("MACFLEET_SANDBOX")
	roots, err := filepath.Glob(filepath.Join(world, "macs", "*", "root"))
	ts.Check(err)
	if len(roots) == 0 {
		ts.Fatalf("no Mac was made yet")
	}
	for _, root := range roots {
		m, err := mac.Open(filepath.Dir(root))
		ts.Check(err)
		now, err := m.Password()
		ts.Check(err)
		var server struct {
			SudoPassword string `json:"sudo_password"`
		}
		id := filepath.Base(filepath.Dir(root))
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(filepath.Join(world, "scaleway", "servers", id+".json"))), &server))
		for _, password := range []string{now, server.SudoPassword} {
			for _, form := range forms(password) {
				places := []string{"stdout", "stderr"}
				for _, name := range []string{"record.json", "recorded.json", filepath.Join(world, "known_hosts"), filepath.Join(world, "access.log")} {
					if _, err := os.Stat(ts.MkAbs(name)); err == nil {
						places = append(places, name)
					}
				}
				for _, folder := range []string{"private/etc/macfleet", "private/etc/sudoers.d", "private/tmp", "private/var", "Users", "Library"} {
					if _, err := os.Stat(filepath.Join(root, folder)); err == nil {
						places = append(places, filepath.Join(root, folder))
					}
				}
				absent(ts, false, append([]string{form}, places...))
			}
		}
	}
}

// forms are the forms in which a password could leak.
func forms(password string) []string {
	if password == "" {
		return nil
	}
	one, two := sha1.Sum([]byte(password)), sha256.Sum256([]byte(password))
	encoded, err := kcpassword.Encode([]byte(password))
	if err != nil {
		return nil
	}
	return []string{password, base64.StdEncoding.EncodeToString([]byte(password))[:12], hex.EncodeToString([]byte(password)),
		hex.EncodeToString(one[:]), hex.EncodeToString(two[:]), string(encoded[:len(password)]),
		base64.StdEncoding.EncodeToString(encoded)[:12], hex.EncodeToString(encoded)[:16]}
}
