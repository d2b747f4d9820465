package mac

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// The disk of a new machine, in bytes.
const (
	diskSize    = 494_384_795_648
	factoryFree = 400_000_000_000
)

// space is how much was free on the disk when its files had a certain total size.
type space struct {
	Free  int64 `json:"free"`
	Files int64 `json:"files"`
}

var spaceRecord = inFirmware("space")

// SetFree sets the number of free bytes on the disk; later writes reduce it, and removals increase it.
func (m *Machine) SetFree(bytes int64) error {
	err := m.asRoot(func(v *visit, _ *proc) error {
		files, err := m.filesSize()
		if err != nil {
			return err
		}
		return v.keep(spaceRecord, space{bytes, files})
	})
	if err != nil {
		return fmt.Errorf("set the free space of the machine in %s: %w", m.dir, err)
	}
	return nil
}

// Free returns the number of free bytes on the disk.
func (m *Machine) Free() (free int64, err error) {
	err = m.asRoot(func(v *visit, _ *proc) error {
		free, err = v.free()
		return err
	})
	return free, err
}

func (v *visit) free() (int64, error) {
	known := space{Free: factoryFree}
	if err := v.recall(spaceRecord, &known); err != nil {
		return 0, err
	}
	files, err := v.session.machine.filesSize()
	return max(0, known.Free-(files-known.Files)), err
}

// filesSize returns the size of all files. It is only needed by df and on a nearly full disk, which a
// new one never is.
func (m *Machine) filesSize() (total int64, err error) {
	total, err = m.totalSize()
	m.saw(sizeSource, "", func() any { return sizeOf(total, err) })
	return total, err
}

func (m *Machine) totalSize() (total int64, err error) {
	err = filepath.WalkDir(m.Root(), func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // someone removed it meanwhile
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		if info, err := entry.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	return total, err
}

// openToWrite opens a file for writing, limited to the free space of the disk.
func (v *visit) openToWrite(p *proc, name string, flag int, mode fs.FileMode) (io.ReadWriteCloser, error) {
	file, err := v.open(p, name, flag, mode)
	if err != nil {
		return nil, err
	}
	return v.bound(file)
}

func (v *visit) bound(file *os.File) (io.ReadWriteCloser, error) {
	if _, err := os.Lstat(filepath.Join(v.session.machine.dir, string(spaceRecord))); err != nil {
		return file, nil // the disk was never filled
	}
	left, err := v.free()
	if err == nil && left == 0 {
		err = syscall.ENOSPC
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &bounded{file: file, left: left}, nil
}

// bounded is a file on a nearly full disk.
type bounded struct {
	file *os.File
	left int64
	full bool
}

// Read reads from the file.
func (b *bounded) Read(data []byte) (int, error) { return b.file.Read(data) }

// Write writes as much as fits.
func (b *bounded) Write(data []byte) (int, error) {
	fits := min(int64(len(data)), b.left)
	n, err := b.file.Write(data[:fits])
	b.left -= int64(n)
	if err == nil && n < len(data) {
		b.full, err = true, syscall.ENOSPC
	}
	return n, err
}

// Close closes the file.
func (b *bounded) Close() error { return b.file.Close() }

// lostOutput ends a tool whose output did not fit on the disk.
func (p *proc) lostOutput(status int) int {
	if to, ok := p.stdout.(*bounded); ok && to.full && status == 0 {
		return p.fail(exitFailed, "stdout: %s", why(syscall.ENOSPC))
	}
	return status
}

// room reports whether a file of that size fits on the disk.
func (v *visit) room(size int) error {
	if data, err := v.session.machine.remembers(spaceRecord); data == nil || err != nil {
		return err
	}
	free, err := v.free()
	if err == nil && free < int64(size) {
		err = syscall.ENOSPC
	}
	return err
}

// EmptyDisk restores the free space of a new machine.
func (m *Machine) EmptyDisk() error {
	err := m.asRoot(func(*visit, *proc) error {
		err := os.Remove(filepath.Join(m.dir, string(spaceRecord)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("free the disk of the machine in %s: %w", m.dir, err)
	}
	return nil
}
