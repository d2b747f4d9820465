package mac

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// open opens a file as a user. A new file belongs to the user and has the mode, less the umask.
func (v *visit) open(p *proc, name string, flag int, mode fs.FileMode) (*os.File, error) {
	n, err := v.resolve(p.user, p.dir, name, true)
	if err != nil {
		return nil, err
	}
	var wanted access
	if flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		wanted = toRead
	} else {
		wanted = toWrite
	}
	switch {
	case !n.exists() && flag&os.O_CREATE == 0:
		return nil, syscall.ENOENT
	case !n.exists():
		return v.create(p, n, mode)
	case n.folder() && wanted == toWrite:
		return nil, syscall.EISDIR
	case !p.user.may(n.owner, n.folder(), wanted):
		return nil, syscall.EACCES
	case v.program(n) && wanted == toWrite:
		return nil, syscall.EPERM
	case v.program(n):
		return nil, syscall.ENOTSUP
	case !n.plain() && !n.folder():
		return nil, syscall.ENOTSUP
	}
	if n.folder() {
		if err := v.settle(n.path); err != nil {
			return nil, err
		}
	} else if wanted == toWrite {
		v.session.machine.changing()
	} else {
		v.sawContent(n.path)
	}
	return v.session.root.OpenFile(relative(n.path), flag&^(os.O_CREATE|os.O_EXCL), 0o644)
}

// sawContent notes that a file was read.
func (v *visit) sawContent(name string) {
	v.session.machine.saw(contentSource, name, func() any { return v.contentOf(name) })
}

// settle creates a bare folder of the system on the disk, because a file is put into it.
func (v *visit) settle(folder string) error {
	if !v.session.machine.bare[folder] {
		return nil
	}
	v.unmade = nil
	v.session.machine.changing()
	return v.session.root.MkdirAll(relative(folder), 0o755)
}

// program reports whether this is one of the system's programs, which have no file.
func (v *visit) program(n node) bool {
	_, ok := n.info.(programInfo)
	return ok
}

func (v *visit) create(p *proc, n node, mode fs.FileMode) (*os.File, error) {
	if err := v.writable(p.user, path.Dir(n.path)); err != nil {
		return nil, err
	}
	if err := v.settle(path.Dir(n.path)); err != nil {
		return nil, err
	}
	file, err := v.session.root.OpenFile(relative(n.path), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	v.born(n.path, owner{p.user.uid, v.groupIn(path.Dir(n.path)), mode &^ p.umask})
	return file, nil
}

// groupIn returns the group of a new file in a folder: on a Mac the folder's.
func (v *visit) groupIn(folder string) int { return v.entryOf(folder, true).GID }

// writable reports whether a user may add and remove files in a folder.
func (v *visit) writable(who user, folder string) error {
	n, err := v.at(folder)
	switch {
	case err != nil:
		return err
	case !n.exists():
		return syscall.ENOENT
	case !n.folder():
		return syscall.ENOTDIR
	case !who.may(n.owner, true, toWrite|toEnter):
		return syscall.EACCES
	}
	return nil
}

// removable reports whether a user may remove this from its folder.
func (v *visit) removable(who user, n node) error {
	folder := path.Dir(n.path)
	if err := v.writable(who, folder); err != nil {
		return err
	}
	if _, device := n.info.(deviceInfo); device || v.program(n) || v.session.machine.bare[n.path] {
		return syscall.EPERM
	}
	above := v.entryOf(folder, true)
	if above.Mode&sticky != 0 && who.uid != 0 && who.uid != n.owner.UID && who.uid != above.UID {
		return syscall.EPERM
	}
	return nil
}

// read returns a file's content as a user sees it.
func (v *visit) read(p *proc, name string) ([]byte, error) {
	file, err := v.open(p, name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close() // it is only read
	return io.ReadAll(file)
}

// replace writes a file atomically, through a new one that replaces it.
func (v *visit) replace(n node, data []byte, o owner) error {
	if n.exists() && !n.plain() {
		return syscall.EISDIR
	}
	if err := v.room(len(data)); err != nil {
		return err
	}
	if err := v.settle(path.Dir(n.path)); err != nil {
		return err
	}
	root, temp := v.session.root, relative(path.Dir(n.path))+"/.new-"+strconv.FormatUint(rand.Uint64(), 36)
	err := root.WriteFile(temp, data, 0o644)
	if err == nil {
		err = root.Rename(temp, relative(n.path))
	}
	if err != nil {
		if failed := root.Remove(temp); !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
		return err
	}
	v.released(n)
	v.born(n.path, o)
	return nil
}

// mkdir creates one folder.
func (v *visit) mkdir(p *proc, n node, mode fs.FileMode) error {
	if n.exists() {
		return syscall.EEXIST
	}
	if err := v.writable(p.user, path.Dir(n.path)); err != nil {
		return err
	}
	if err := v.settle(path.Dir(n.path)); err != nil {
		return err
	}
	if err := v.session.root.Mkdir(relative(n.path), 0o755); err != nil {
		return err
	}
	v.born(n.path, owner{p.user.uid, v.groupIn(path.Dir(n.path)), mode})
	return nil
}

// mkdirAll creates a folder with its parents.
func (v *visit) mkdirAll(p *proc, name string, mode fs.FileMode) error {
	n, err := v.resolve(p.user, p.dir, name, true)
	switch {
	case err == nil && n.folder():
		return nil
	case err == nil && n.exists():
		return syscall.EEXIST
	case errors.Is(err, syscall.ENOENT) && path.Dir(path.Clean(name)) != path.Clean(name):
		if err := v.mkdirAll(p, path.Dir(path.Clean(name)), 0o777&^p.umask); err != nil {
			return err
		}
		n, err = v.resolve(p.user, p.dir, name, true)
	}
	if err != nil {
		return err
	}
	return v.mkdir(p, n, mode)
}

// remove removes a file, a link or an empty folder.
func (v *visit) remove(who user, n node) error {
	v.session.machine.changing()
	if err := v.removable(who, n); err != nil {
		return err
	}
	if err := v.protectedApp(n, false); err != nil {
		return err
	}
	if err := v.session.root.Remove(relative(n.path)); err != nil {
		return err
	}
	v.released(n)
	v.forget(n.path)
	return nil
}

// removeAll removes a file or a whole folder.
func (v *visit) removeAll(who user, n node) error {
	if n.folder() {
		children, err := v.list(who, n)
		if err != nil {
			return err
		}
		for _, child := range children {
			if err := v.removeAll(who, child); err != nil {
				return err
			}
		}
	}
	return v.remove(who, n)
}

// list returns the content of a folder, by name.
func (v *visit) list(who user, folder node) ([]node, error) {
	if !who.may(folder.owner, true, toRead) {
		return nil, syscall.EACCES
	}
	entries, err := v.entries(folder.path)
	if err != nil {
		return nil, err
	}
	var children []node
	for _, entry := range entries {
		child, err := v.at(folder.child(entry.Name()))
		if err != nil {
			return nil, err
		}
		if child.exists() {
			children = append(children, child)
		}
	}
	return children, nil
}

// entries returns the content of a folder, by name, with bare folders and the system's programs.
func (v *visit) entries(folder string) ([]fs.DirEntry, error) {
	all, err := v.namesIn(folder)
	v.session.machine.saw(namesSource, folder, func() any {
		if err != nil {
			return err.Error()
		}
		return namesOf(all)
	})
	return all, err
}

func (v *visit) namesIn(folder string) ([]fs.DirEntry, error) {
	if folder == deviceFolder {
		return []fs.DirEntry{fs.FileInfoToDirEntry(deviceInfo{"console"})}, nil
	}
	m := v.session.machine
	all, err := os.ReadDir(m.root + folder)
	if err != nil && !(m.bare[folder] && errors.Is(err, fs.ErrNotExist)) {
		return nil, err
	}
	onDisk := len(all)
	add := func(info fs.FileInfo) {
		if !slices.ContainsFunc(all[:onDisk], func(e fs.DirEntry) bool { return e.Name() == info.Name() }) {
			all = append(all, fs.FileInfoToDirEntry(info))
		}
	}
	if folder == "/" {
		add(folderInfo{"dev"})
	}
	for bare := range m.bare {
		if path.Dir(bare) == folder {
			add(folderInfo{path.Base(bare)})
		}
	}
	for _, name := range m.programs[folder] {
		add(programInfo{name})
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, nil
}

// why returns the message for an error as macOS's tools print it.
func why(err error) string {
	var number syscall.Errno
	if !errors.As(err, &number) {
		return fmt.Sprint(err)
	}
	switch number {
	case syscall.ENOENT:
		return "No such file or directory"
	case syscall.EACCES:
		return "Permission denied"
	case syscall.EPERM:
		return "Operation not permitted"
	case syscall.EEXIST:
		return "File exists"
	case syscall.ENOTDIR:
		return "Not a directory"
	case syscall.EISDIR:
		return "Is a directory"
	case syscall.ENOTEMPTY:
		return "Directory not empty"
	case syscall.EINVAL:
		return "Invalid argument"
	case syscall.ELOOP:
		return "Too many levels of symbolic links"
	case syscall.ENAMETOOLONG:
		return "File name too long"
	case syscall.ENOTSUP:
		return "Operation not supported"
	case syscall.ENOSPC:
		return "No space left on device"
	}
	return number.Error()
}
