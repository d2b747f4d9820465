package mac

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// Limits of the file system.
const (
	maxLinks = 32
	maxPath  = 1024
)

// node is a place in the tree: a path without links, and the file there.
type node struct {
	path string
	info fs.FileInfo // nil if there is no file
	entry
}

func (n node) exists() bool { return n.info != nil }
func (n node) folder() bool { return n.info != nil && n.info.IsDir() }
func (n node) link() bool   { return n.info != nil && n.info.Mode()&fs.ModeSymlink != 0 }
func (n node) plain() bool  { return n.info != nil && n.info.Mode().IsRegular() }

// child returns a place right below a folder.
func (n node) child(name string) string { return path.Join(n.path, name) }

// at reads a path without links, except perhaps in its last part.
func (v *visit) at(name string) (node, error) {
	n, err := v.lookUp(name)
	v.sawFile(n, name, err, fileSource)
	return n, err
}

// sawFile notes that a file was looked up.
func (v *visit) sawFile(n node, name string, err error, kind sourceKind) {
	v.session.machine.saw(kind, name, func() any {
		switch {
		case err != nil:
			return err.Error()
		case kind == waySource:
			return wayOf(n)
		}
		return statedOf(n)
	})
}

// lookUp is at for one part of a way.
func (v *visit) lookUp(name string) (node, error) {
	if n, ok, err := v.device(name); ok {
		return n, err
	}
	info, err := v.lstat(name)
	switch {
	case err == nil:
		return node{name, info, v.entryOf(name, info.IsDir())}, nil
	case !os.IsNotExist(err):
		return node{}, err
	}
	if t, ok := v.session.machine.tools[path.Base(name)]; ok && name == t.path() {
		// The system's own programs have no file here, but a script may look for them.
		return node{name, programInfo{t.name}, entry{owner: owner{Mode: 0o755}}}, nil
	}
	if v.session.machine.bare[name] {
		return node{name, folderInfo{path.Base(name)}, v.entryOf(name, true)}, nil
	}
	return node{path: name}, nil
}

// lstat reads the disk. It skips the content of a bare folder that is missing: most lookups are
// searches for commands in such folders.
func (v *visit) lstat(name string) (fs.FileInfo, error) {
	if v.unmade[path.Dir(name)] {
		if v.session.machine.bare[name] {
			v.unmade[name] = true
		}
		return nil, fs.ErrNotExist
	}
	info, err := os.Lstat(v.session.machine.root + name)
	if v.session.machine.bare[name] && os.IsNotExist(err) {
		if v.unmade == nil {
			v.unmade = map[string]bool{}
		}
		v.unmade[name] = true
	}
	return info, err
}

// resolve resolves a name for a user in a working directory. Links are followed within the tree only,
// absolute ones from its root. The last part of the name may be missing, and is followed only on
// request.
func (v *visit) resolve(who user, dir, name string, follow bool) (node, error) {
	switch {
	case name == "":
		return node{}, syscall.ENOENT
	case len(name) > maxPath:
		return node{}, syscall.ENAMETOOLONG
	case strings.ContainsRune(name, 0):
		return node{}, syscall.EINVAL
	case !path.IsAbs(name):
		name = dir + "/" + name
	}
	top := node{"/", v.session.top, v.entryOf("/", true)}
	here, err := top, error(nil)
	// A trailing slash stands for the target of a link.
	follow = follow || strings.HasSuffix(name, "/")
	parts := split(name)
	for links := 0; len(parts) > 0; {
		part := parts[0]
		parts = parts[1:]
		if err := v.enter(who, here); err != nil {
			return node{}, err
		}
		if part == ".." {
			above := path.Dir(here.path)
			here, err = v.lookUp(above)
			v.sawFile(here, above, err, waySource)
			if err != nil {
				return node{}, err
			}
			continue
		}
		next, err := v.lookUp(here.child(part))
		v.sawFile(next, here.child(part), err, waySource)
		if err != nil {
			return node{}, err
		}
		if !next.link() || len(parts) == 0 && !follow {
			here = next
			continue
		}
		if links++; links > maxLinks {
			return node{}, syscall.ELOOP
		}
		target, err := v.readlink(next)
		if err != nil {
			return node{}, err
		}
		if path.IsAbs(target) {
			here = top
		}
		parts = append(split(target), parts...)
	}
	v.sawFile(here, here.path, nil, fileSource)
	return here, endsAsFolder(name, here)
}

// readlink returns the text of a symbolic link.
func (v *visit) readlink(n node) (string, error) {
	text, err := v.session.root.Readlink(relative(n.path))
	v.session.machine.saw(linkSource, n.path, func() any {
		if err != nil {
			return err.Error()
		}
		return text
	})
	return text, err
}

// endsAsFolder refuses a trailing slash after what is not a folder.
func endsAsFolder(name string, n node) error {
	if strings.HasSuffix(name, "/") && n.exists() && !n.folder() {
		return syscall.ENOTDIR
	}
	return nil
}

func (v *visit) enter(who user, folder node) error {
	switch {
	case !folder.exists():
		return syscall.ENOENT
	case !folder.folder():
		return syscall.ENOTDIR
	case !who.may(folder.owner, true, toEnter):
		return syscall.EACCES
	}
	return nil
}

// find is resolve for a file that must exist.
func (v *visit) find(who user, dir, name string, follow bool) (node, error) {
	n, err := v.resolve(who, dir, name, follow)
	if err == nil && !n.exists() {
		err = syscall.ENOENT
	}
	return n, err
}

// split returns the significant parts of a path.
func split(name string) []string {
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	return parts
}

// relative returns a path of the tree as os.Root needs it.
func relative(name string) string {
	if name == "/" {
		return "."
	}
	return strings.TrimPrefix(name, "/")
}
