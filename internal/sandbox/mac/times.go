package mac

import (
	"hash/fnv"
	"time"
)

// firstInode is below the number of every new file: APFS counts from there on a Mac's data volume.
const firstInode = 12_884_901_888

// handMadeInode is the inode number of a file that nothing on the machine has made: below firstInode, and
// the same in every copy of the machine's folder.
func handMadeInode(path string) uint64 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(path)) // it never fails
	return 1<<24 + uint64(sum.Sum32())
}

// number returns the inode number of a file.
func (n node) number() uint64 {
	if n.inode == 0 {
		return handMadeInode(n.path)
	}
	return n.inode
}

// changedAt returns when a file was last changed, on the machine's clock. Unlike the time of the content
// it cannot be set, so it can be compared with the start of a process. Content that is newer than what the
// ledger noted was written since, by the machine or with an editor.
func (s *session) changedAt(n node) time.Time {
	content := n.info.ModTime()
	if !n.changed.IsZero() && sameTime(content, n.modified) {
		return n.changed
	}
	return content.Add(s.machine.aheadAt(content))
}

// sameTime compares a time on the disk with a noted one: archives keep times in whole seconds.
func sameTime(onDisk, noted time.Time) bool {
	return onDisk.Equal(noted) || onDisk.Nanosecond() == 0 && onDisk.Unix() == noted.Unix()
}
