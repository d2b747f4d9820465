package mac

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// owner is a file's owner and mode bits, with the sticky bit.
type owner struct {
	UID, GID int
	Mode     fs.FileMode
}

// ledger is the record of owners and modes next to the tree, with what shows whether it is current.
type ledger struct {
	owners     map[string]owner // by path without links; never changed in place
	generation uint64
	stamp      stamp
}

// line is an owner in the file: people read modes in octal.
type line struct {
	UID  int    `json:"uid"`
	GID  int    `json:"gid"`
	Mode string `json:"mode"`
}

func encodeLedger(owners map[string]owner) ([]byte, error) {
	lines := make(map[string]line, len(owners))
	for path, o := range owners {
		lines[path] = line{o.UID, o.GID, fmt.Sprintf("%04o", uint32(o.Mode))}
	}
	data, err := json.MarshalIndent(lines, "", " ")
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", ledgerFile, err)
	}
	return append(data, '\n'), nil
}

func decodeLedger(data []byte) (map[string]owner, error) {
	var lines map[string]line
	if err := json.Unmarshal(data, &lines); err != nil {
		return nil, fmt.Errorf("read %s: %w", ledgerFile, err)
	}
	owners := make(map[string]owner, len(lines))
	for path, l := range lines {
		mode, err := strconv.ParseUint(l.Mode, 8, 12)
		if err != nil {
			return nil, fmt.Errorf("read %s: the mode of %s: %w", ledgerFile, path, err)
		}
		owners[path] = owner{l.UID, l.GID, fs.FileMode(mode)}
	}
	return owners, nil
}

// current returns the current ledger. The machine's lock must be held. The record in memory is used
// only if neither the counter in the lock file nor the file itself has changed.
func (m *Machine) current(lock *os.File) (ledger, error) {
	var counter [8]byte
	if _, err := lock.ReadAt(counter[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return ledger{}, fmt.Errorf("read %s: %w", lockFile, err)
	}
	generation := binary.BigEndian.Uint64(counter[:])
	path := m.dir + "/" + ledgerFile
	now, err := stampOf(path)
	if err != nil {
		return ledger{}, err
	}
	if m.known.owners != nil && m.known.generation == generation && m.known.stamp == now {
		return m.known, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return ledger{}, err
	}
	owners, err := decodeLedger(data)
	if err != nil {
		return ledger{}, err
	}
	m.known = ledger{owners, generation, now}
	return m.known, nil
}

// record replaces the ledger, without the removed files.
func (m *Machine) record(lock *os.File, owners map[string]owner, generation uint64) error {
	maps.DeleteFunc(owners, func(path string, _ owner) bool {
		_, err := os.Lstat(filepath.Join(m.Root(), path))
		return errors.Is(err, fs.ErrNotExist) && !m.bare[path]
	})
	data, err := encodeLedger(owners)
	if err != nil {
		return err
	}
	path := filepath.Join(m.dir, ledgerFile)
	if err := replaceFile(path, data); err != nil {
		return err
	}
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], generation+1)
	if _, err := lock.WriteAt(counter[:], 0); err != nil {
		return fmt.Errorf("write %s: %w", lockFile, err)
	}
	now, err := stampOf(path)
	if err != nil {
		return err
	}
	m.known = ledger{owners, generation + 1, now}
	return nil
}

// below reports whether path is folder or is in it.
func below(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

// replaceFile writes a file of the machine's own atomically, even if the disk is full.
func replaceFile(path string, data []byte) error {
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		_ = os.Remove(path + ".new") // the write's error has more detail
		return err
	}
	return os.Rename(path+".new", path)
}
