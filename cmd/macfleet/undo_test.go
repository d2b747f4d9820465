package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// arm ROOT SECONDS simulates a run that was killed: a change of vm_firewall that the Mac undoes after SECONDS.
func arm(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: arm ROOT SECONDS")
	}
	seconds, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	var machine struct{ Booted time.Time }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(filepath.Join(filepath.Dir(args[0]), "machine.json"))), &machine))
	b := machine.Booted
	boot := fmt.Sprintf("{ sec = %d, usec = %d } %s", b.Unix(), b.Nanosecond()/1000, b.Format("Mon Jan _2 15:04:05 2006"))
	undo := filepath.Join(args[0], "etc/macfleet/undo")
	dir := filepath.Join(undo, "armed.killedrun")
	ts.Check(os.MkdirAll(filepath.Join(undo, "queue"), 0o755))
	ts.Check(os.WriteFile(filepath.Join(undo, "queue/killedrun"), nil, 0o644))
	ts.Check(os.MkdirAll(dir, 0o711))
	for name, text := range map[string]string{"boot": boot, "deadline": strconv.FormatInt(time.Now().Unix()+seconds, 10), "limit": "60",
		"step": "vm_firewall", "restore": ":"} {
		ts.Check(os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644))
	}
}
