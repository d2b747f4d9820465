package mac

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"
)

// ReadFile returns the content of a file of the machine, by absolute path.
func (m *Machine) ReadFile(name string) ([]byte, error) {
	var data []byte
	err := m.asRoot(func(v *visit, p *proc) (err error) {
		data, err = v.read(p, name)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return data, nil
}

// WriteFile writes a file of the machine atomically, with its parent folders, by absolute path.
func (m *Machine) WriteFile(name string, data []byte, uid, gid int, mode fs.FileMode) error {
	err := m.asRoot(func(v *visit, p *proc) error {
		if err := v.mkdirAll(p, path.Dir(name), 0o755); err != nil {
			return err
		}
		n, err := v.resolve(p.user, p.dir, name, true)
		if err != nil {
			return err
		}
		return v.replace(n, data, owner{uid, gid, mode & 0o7777})
	})
	if err != nil {
		return fmt.Errorf("write %s on the machine: %w", name, err)
	}
	return nil
}

// Remove removes a file or a folder of the machine, by absolute path. A missing one is not an error.
func (m *Machine) Remove(name string) error {
	err := m.asRoot(func(v *visit, p *proc) error {
		n, err := v.resolve(p.user, p.dir, name, false)
		if errors.Is(err, syscall.ENOENT) || err == nil && !n.exists() {
			return nil
		}
		if err != nil {
			return err
		}
		if n.path == "/" {
			return syscall.EINVAL
		}
		return v.removeAll(p.user, n)
	})
	if err != nil {
		return fmt.Errorf("remove %s on the machine: %w", name, err)
	}
	return nil
}

// asRoot runs f on the machine's disk with root's rights.
func (m *Machine) asRoot(f func(*visit, *proc) error) error {
	s, err := m.session()
	if err != nil {
		return err
	}
	defer s.close()
	root := s.users()[0]
	p := &proc{session: s, user: root, dir: "/", umask: 0o022}
	return s.visit(func(v *visit) error { return f(v, p) })
}
