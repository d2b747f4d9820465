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
	"slices"
	"strconv"
	"strings"
	"time"
)

// owner is a file's owner and mode bits, with the sticky bit.
type owner struct {
	UID, GID int
	Mode     fs.FileMode
}

// entry is what the machine's file system knows of a file and the real disk cannot tell: a copy of the
// machine's folder has other inode numbers and other times of change.
type entry struct {
	owner
	inode    uint64    // 0: the file was made by hand
	changed  time.Time // of the file, its owner or its name, on the machine's clock; zero: with its content
	modified time.Time // of the content when changed was noted, on the disk's clock
}

// ledger is the record of the files next to the tree, with what shows whether it is current.
type ledger struct {
	entries    map[string]entry // by path without links; never changed in place
	generation uint64
	inodes     uint64 // how many were given away
	stamp      stamp
}

// line is an entry in the file: people read modes in octal.
type line struct {
	UID      int       `json:"uid"`
	GID      int       `json:"gid"`
	Mode     string    `json:"mode"`
	Inode    uint64    `json:"inode,omitempty"`
	Changed  time.Time `json:"changed,omitzero"`
	Modified time.Time `json:"modified,omitzero"`
}

// encodeLedger writes a line for each entry, sorted. It runs at every new file, and encoding/json indents slowly.
func encodeLedger(entries map[string]entry) ([]byte, error) {
	data := make([]byte, 0, 128*len(entries))
	for _, path := range slices.Sorted(maps.Keys(entries)) {
		e := entries[path]
		text, err := json.Marshal(line{e.UID, e.GID, fmt.Sprintf("%04o", uint32(e.Mode)), e.inode, e.changed, e.modified})
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", ledgerFile, err)
		}
		name, err := json.Marshal(path)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", ledgerFile, err)
		}
		data = append(append(append(append(data, ",\n "...), name...), ": "...), text...)
	}
	data = append(data, "\n}\n"...)
	if data[0] = '{'; len(entries) == 0 {
		data = []byte("{}\n")
	}
	return data, nil
}

func decodeLedger(data []byte) (map[string]entry, error) {
	var lines map[string]line
	if err := json.Unmarshal(data, &lines); err != nil {
		return nil, fmt.Errorf("read %s: %w", ledgerFile, err)
	}
	entries := make(map[string]entry, len(lines))
	for path, l := range lines {
		mode, err := strconv.ParseUint(l.Mode, 8, 12)
		if err != nil {
			return nil, fmt.Errorf("read %s: the mode of %s: %w", ledgerFile, path, err)
		}
		entries[path] = entry{owner{l.UID, l.GID, fs.FileMode(mode)}, l.Inode, l.Changed, l.Modified}
	}
	return entries, nil
}

// current returns the current ledger. The machine's lock must be held. The record in memory is used
// only if neither the counter in the lock file nor the file itself has changed.
func (m *Machine) current(lock *os.File) (ledger, error) {
	var counters [2 * 8]byte
	if _, err := lock.ReadAt(counters[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return ledger{}, fmt.Errorf("read %s: %w", lockFile, err)
	}
	generation, inodes := binary.BigEndian.Uint64(counters[:]), binary.BigEndian.Uint64(counters[8:])
	path := m.dir + "/" + ledgerFile
	now, err := stampOf(path)
	if err != nil {
		return ledger{}, err
	}
	if m.known.entries != nil && m.known.generation == generation && m.known.stamp == now {
		return m.known, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return ledger{}, err
	}
	entries, err := decodeLedger(data)
	if err != nil {
		return ledger{}, err
	}
	m.known = ledger{entries, generation, inodes, now}
	return m.known, nil
}

// The lock file holds three numbers: the ledger's generation, how many inode numbers were given away, and when
// something on the machine changed last.
const lastChangeAt = 2 * 8

// lastChange returns when something on the machine changed last, on its clock.
func (s *session) lastChange() time.Time {
	var counter [8]byte
	if _, err := s.lock.ReadAt(counter[:], lastChangeAt); err != nil {
		return time.Time{} // nothing has changed yet
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(counter[:])))
}

func (s *session) changedNow() error {
	now := binary.BigEndian.AppendUint64(nil, uint64(s.instant().UnixNano()))
	if _, err := s.lock.WriteAt(now, lastChangeAt); err != nil {
		return fmt.Errorf("write %s: %w", lockFile, err)
	}
	return nil
}

// record replaces the ledger.
func (m *Machine) record(lock *os.File, book ledger) error {
	data, err := encodeLedger(book.entries)
	if err != nil {
		return err
	}
	path := filepath.Join(m.dir, ledgerFile)
	if err := replaceFile(path, data); err != nil {
		return err
	}
	book.generation++
	counters := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, book.generation), book.inodes)
	if _, err := lock.WriteAt(counters, 0); err != nil {
		return fmt.Errorf("write %s: %w", lockFile, err)
	}
	if book.stamp, err = stampOf(path); err != nil {
		return err
	}
	m.known = book
	return nil
}

// sweep removes the entries of files that someone has removed by hand. Every session does it once.
func (v *visit) sweep() {
	m := v.session.machine
	for path := range v.book.entries {
		if _, err := os.Lstat(m.root + path); errors.Is(err, fs.ErrNotExist) && !m.bare[path] {
			v.change()
			delete(v.book.entries, path)
		}
	}
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
