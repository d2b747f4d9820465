package mac

import (
	"errors"
	"maps"
	"path"
	"strings"
	"syscall"
)

// rename moves a file or folder, and replaces what rename(2) would replace.
func (v *visit) rename(p *proc, from, to node) error {
	if err := v.removable(p.user, from); err != nil {
		return err
	}
	if err := v.protectedApp(from, true); err != nil {
		return err
	}
	if err := v.writable(p.user, path.Dir(to.path)); err != nil {
		return err
	}
	if to.exists() {
		if err := v.removable(p.user, to); err != nil {
			return err
		}
	}
	switch {
	case from.path == to.path:
		return nil
	case from.folder() && below(to.path, from.path):
		return syscall.EINVAL
	case to.folder() && !from.folder():
		return syscall.EISDIR
	case to.exists() && !to.folder() && from.folder():
		return syscall.ENOTDIR
	}
	if err := v.settle(path.Dir(to.path)); err != nil {
		return err
	}
	moved := map[string]entry{}
	err := v.walk(from, func(n node) error {
		n.inode = n.number()
		moved[to.path+strings.TrimPrefix(n.path, from.path)] = n.entry
		return nil
	})
	if err != nil {
		return err
	}
	if err := v.session.root.Rename(relative(from.path), relative(to.path)); err != nil {
		return err
	}
	if to.exists() {
		v.released(to)
	}
	v.forget(from.path)
	v.forget(to.path)
	v.change()
	maps.Copy(v.book.entries, moved)
	v.note(from, to.path)
	return nil
}

// walk calls f for a place and everything below it, parents first.
func (v *visit) walk(n node, f func(node) error) error {
	if err := f(n); err != nil || !n.folder() {
		return err
	}
	children, err := v.list(v.session.users()[0], n)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := v.walk(child, f); err != nil {
			return err
		}
	}
	return nil
}

// chmod sets the mode bits of a file; only its owner and root may.
func (v *visit) chmod(who user, n node, change func(owner) owner) error {
	if who.uid != 0 && who.uid != n.owner.UID || v.program(n) {
		return syscall.EPERM
	}
	v.own(n, change(n.owner))
	return nil
}

// link gives a file a second name.
func (v *visit) link(p *proc, from, to node) error {
	switch {
	case to.exists():
		return syscall.EEXIST
	case from.folder() || v.program(from):
		return syscall.EPERM
	}
	if err := v.writable(p.user, path.Dir(to.path)); err != nil {
		return err
	}
	if err := v.settle(path.Dir(to.path)); err != nil {
		return err
	}
	if err := v.session.root.Link(relative(from.path), relative(to.path)); err != nil {
		return err
	}
	v.note(from, from.path)
	v.note(from, to.path)
	return nil
}

// symlink creates a link that holds a text.
func (v *visit) symlink(p *proc, text string, to node) error {
	if to.exists() {
		return syscall.EEXIST
	}
	if err := v.writable(p.user, path.Dir(to.path)); err != nil {
		return err
	}
	if err := v.settle(path.Dir(to.path)); err != nil {
		return err
	}
	if err := v.session.root.Symlink(text, relative(to.path)); err != nil {
		return err
	}
	v.born(to.path, owner{p.user.uid, v.groupIn(path.Dir(to.path)), v.handMade(to.path, false).Mode})
	return nil
}

// into returns the target of a move or copy: within the target if that is a folder.
func (v *visit) into(p *proc, source, target string) (node, error) {
	to, err := v.resolve(p.user, p.dir, target, true)
	if err != nil {
		return node{}, err
	}
	if to.folder() {
		if err := v.enter(p.user, to); err != nil {
			return node{}, err
		}
		return v.at(to.child(path.Base(path.Clean(source))))
	}
	if strings.HasSuffix(target, "/") && !to.exists() {
		return node{}, syscall.ENOENT
	}
	// A link is replaced itself, not its target.
	return v.resolve(p.user, p.dir, strings.TrimSuffix(target, "/"), false)
}

// missing reports whether an error is about a missing file.
func missing(err error) bool { return errors.Is(err, syscall.ENOENT) }
