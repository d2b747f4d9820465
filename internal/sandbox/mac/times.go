package mac

import (
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// changedAt is when a file, its owner or its name was last changed.
func changedAt(name string) (time.Time, error) {
	var record unix.Stat_t
	if err := unix.Lstat(name, &record); err != nil {
		return time.Time{}, err
	}
	return time.Unix(record.Ctim.Unix()), nil
}

// changed returns when a file was last changed, on the machine's clock. Unlike the time of the content
// it cannot be set, so it can be compared with the start of a process.
func (s *session) changed(n node) time.Time {
	at, err := changedAt(filepath.Join(s.machine.Root(), n.path))
	if err != nil {
		return n.info.ModTime() // one of the system's own, which has no file
	}
	return at.Add(s.machine.aheadAt(at))
}
