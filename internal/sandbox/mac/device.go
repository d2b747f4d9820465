package mac

import (
	"io/fs"
	"syscall"
	"time"
)

const (
	deviceFolder  = "/dev"
	consoleDevice = "/dev/console"
)

// deviceInfo is a device that can be read.
type deviceInfo struct{ name string }

func (i deviceInfo) Name() string     { return i.name }
func (deviceInfo) Size() int64        { return 0 }
func (deviceInfo) Mode() fs.FileMode  { return fs.ModeDevice | fs.ModeCharDevice | 0o600 }
func (deviceInfo) ModTime() time.Time { return time.Unix(1_767_225_600, 0) }
func (deviceInfo) IsDir() bool        { return false }
func (deviceInfo) Sys() any           { return &syscall.Stat_t{Nlink: 1} }

// device returns the devices in the tree. The screen belongs to the user of its session.
func (v *visit) device(name string) (n node, ok bool, err error) {
	switch name {
	case deviceFolder:
		return node{name, folderInfo{"dev"}, entry{owner: owner{Mode: 0o755}}}, true, nil
	case consoleDevice:
		who, err := v.consoleUser()
		o := owner{Mode: 0o600}
		if who.uid != 0 {
			o = owner{who.uid, who.groups[0], 0o620}
		}
		return node{name, deviceInfo{"console"}, entry{owner: o}}, true, err
	}
	return node{}, false, nil
}
