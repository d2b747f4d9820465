package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"
)

// reseal FILE writes the new digest into an edited plan file, as a forger would.
func reseal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: reseal FILE")
	}
	line := regexp.MustCompile(`("self_digest": ")[^"]*`)
	bare := line.ReplaceAllString(ts.ReadFile(args[0]), "$1")
	sum := sha256.Sum256([]byte(bare))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(line.ReplaceAllString(bare, "${1}sha256:"+hex.EncodeToString(sum[:]))), 0o600))
}
