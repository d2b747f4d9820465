package artifact

import (
	"io/fs"
	"syscall"
)

// inode returns the number of a file on its disk.
func inode(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}
