package mac

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// place is a file for a part of the machine's state that is not on its disk. It is next to the tree,
// so that the tree shows only what a Mac's disk would.
type place string

// inMemory is lost in a boot: running jobs, loaded rules, sessions.
func inMemory(part string) place { return place(filepath.Join(memoryFolder, part+".json")) }

// inFirmware survives a boot and is in no file of the tree: failed logins, the disk's encryption, the
// switches.
func inFirmware(part string) place { return place(filepath.Join(firmwareFolder, part+".json")) }

const (
	memoryFolder   = "memory"
	firmwareFolder = "firmware"
)

// recall reads a part of the machine's state. If there is none, into is unchanged.
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

// keep replaces a part of the machine's state.
func (v *visit) keep(at place, what any) error {
	v.kept = true
	return v.write(at, what)
}

func (v *visit) write(at place, what any) error {
	v.session.machine.changing()
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

// loseMemory removes what a boot loses.
func (v *visit) loseMemory() error {
	return os.RemoveAll(filepath.Join(v.session.machine.dir, memoryFolder))
}
