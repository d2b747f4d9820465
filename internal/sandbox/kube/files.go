package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// files caches state files: 500 Nodes are read often and change seldom.
type files map[string]file

type file struct {
	stamp stamp
	held  *object
}

// stamp changes with a file's content.
type stamp struct {
	inode    uint64
	size     int64
	modified int64 // ns
	changed  int64 // ns
}

// settled is how long a file must be unchanged before it is cached: a second write within one tick of
// the file system's clock would leave the same stamp.
const settled = 50 * time.Millisecond

// read returns the decoded file at path, or nil if it is missing.
func (f files) read(path string, decode func([]byte) (*object, error)) (*object, error) {
	var status unix.Stat_t
	if err := unix.Lstat(path, &status); errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		delete(f, path)
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read the sandbox's object %s: %w", path, err)
	}
	now := stampOf(&status)
	if known, ok := f[path]; ok && known.stamp == now {
		return known.held, nil
	}
	delete(f, path)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the sandbox's object: %w", err)
	}
	held, err := decode(data)
	if err == nil && time.Now().UnixNano()-now.changed > int64(settled) {
		f[path] = file{now, held}
	}
	return held, err
}

func (f files) forget(path string) { delete(f, path) }

func stampOf(s *unix.Stat_t) stamp {
	return stamp{s.Ino, s.Size, s.Mtim.Nano(), s.Ctim.Nano()}
}
