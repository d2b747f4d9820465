package mac

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// place is where a part of the machine keeps what is not on its disk: next to the tree, so that a
// look at the tree shows what a Mac's disk would.
type place string

// inMemory is what a boot loses: running jobs, loaded rules, sessions.
func inMemory(part string) place { return place(filepath.Join(memoryFolder, part+".json")) }

// inFirmware is what a boot keeps and no file of the tree shows: failed logins, the disk's
// encryption, the switches.
func inFirmware(part string) place { return place(filepath.Join(firmwareFolder, part+".json")) }

const (
	memoryFolder   = "memory"
	firmwareFolder = "firmware"
)

// recall reads what a part of the machine has kept. Where it has kept nothing, into stays as it is.
func (v *visit) recall(at place, into any) error {
	data, err := v.session.machine.remembers(at)
	if data == nil || err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}

// keep replaces what a part of the machine has kept.
func (v *visit) keep(at place, what any) error {
	data, err := json.MarshalIndent(what, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	path := filepath.Join(v.session.machine.dir, string(at))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return replaceFile(path, append(data, '\n'))
}

// loseMemory forgets what a boot loses.
func (v *visit) loseMemory() error {
	return os.RemoveAll(filepath.Join(v.session.machine.dir, memoryFolder))
}
