package mac

import (
	"io/fs"
	"syscall"
	"time"
)

// programSize is the size that a program of the system reports.
const programSize = 136_704

// programInfo is a program of the system, which has no file.
type programInfo struct{ name string }

func (i programInfo) Name() string     { return i.name }
func (programInfo) Size() int64        { return programSize }
func (programInfo) Mode() fs.FileMode  { return 0o755 }
func (programInfo) ModTime() time.Time { return time.Unix(1_767_225_600, 0) }
func (programInfo) IsDir() bool        { return false }
func (programInfo) Sys() any           { return &syscall.Stat_t{Nlink: 1} }

// folderInfo is an empty folder of the system.
type folderInfo struct{ name string }

func (i folderInfo) Name() string     { return i.name }
func (folderInfo) Size() int64        { return 64 }
func (folderInfo) Mode() fs.FileMode  { return fs.ModeDir | 0o755 }
func (folderInfo) ModTime() time.Time { return time.Unix(1_767_225_600, 0) }
func (folderInfo) IsDir() bool        { return true }
func (folderInfo) Sys() any           { return &syscall.Stat_t{Nlink: 2} }

// fileInfo is the machine's view of a file: as on the real disk, but with the owner and mode of the
// ledger.
type fileInfo struct {
	fs.FileInfo
	owner owner
}

// Mode returns the file's type with its mode on the machine.
func (i fileInfo) Mode() fs.FileMode {
	mode := i.FileInfo.Mode().Type() | i.owner.Mode.Perm()
	if i.owner.Mode&sticky != 0 {
		mode |= fs.ModeSticky
	}
	if i.owner.Mode&0o4000 != 0 {
		mode |= fs.ModeSetuid
	}
	if i.owner.Mode&0o2000 != 0 {
		mode |= fs.ModeSetgid
	}
	return mode
}

// Sys returns the system's record of the file with its owner on the machine.
func (i fileInfo) Sys() any {
	record := systemRecord(i.FileInfo)
	record.Uid, record.Gid = uint32(i.owner.UID), uint32(i.owner.GID)
	return &record
}

func systemRecord(info fs.FileInfo) syscall.Stat_t {
	if record, ok := info.Sys().(*syscall.Stat_t); ok {
		return *record
	}
	return syscall.Stat_t{}
}

func (n node) stat() fileInfo {
	o := n.owner
	if n.link() {
		o.Mode = 0o755
	}
	return fileInfo{n.info, o}
}
