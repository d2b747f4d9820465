package mac

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"syscall"
	"time"
)

// each calls a function for every operand and continues after a failure. The message is for people.
func (p *proc) each(operands []string, do func(v *visit, name string) error) int {
	status := 0
	for _, name := range operands {
		if err := p.visit(func(v *visit) error { return do(v, name) }); err != nil {
			status = p.fail(exitFailed, "%s: %s", name, why(err))
		}
	}
	return status
}

func mkdir(p *proc) int {
	o, names, status, ok := p.options("pm:")
	switch {
	case !ok:
		return status
	case len(names) == 0:
		return p.usage("mkdir [-pv] [-m mode] directory_name ...")
	}
	mode := 0o777 &^ p.umask
	if o.has('m') {
		change, ok := modeChange(o['m'], p.umask)
		if !ok {
			return p.fail(exitFailed, "invalid file mode: %s", o['m'])
		}
		mode = change(owner{Mode: 0o777}, true).Mode
	}
	return p.each(names, func(v *visit, name string) error {
		if o.has('p') {
			return v.mkdirAll(p, name, mode)
		}
		n, err := v.resolve(p.user, p.dir, strings.TrimRight(name, "/"), false)
		if err != nil {
			return err
		}
		return v.mkdir(p, n, mode)
	})
}

func rmdir(p *proc) int {
	_, names, status, ok := p.options("")
	if !ok {
		return status
	}
	return p.each(names, func(v *visit, name string) error {
		n, err := v.find(p.user, p.dir, name, false)
		switch {
		case err != nil:
			return err
		case !n.folder():
			return syscall.ENOTDIR
		}
		return v.remove(p.user, n)
	})
}

func rm(p *proc) int {
	o, names, status, ok := p.options("frR")
	switch {
	case !ok:
		return status
	case len(names) == 0 && !o.has('f'):
		return p.usage("rm [-f | -i] [-dIPRrvWx] file ...")
	}
	return p.each(names, func(v *visit, name string) error {
		n, err := v.find(p.user, p.dir, name, false)
		switch {
		case missing(err) && o.has('f'):
			return nil
		case err != nil:
			return err
		case n.path == "/" || path.Base(name) == "." || path.Base(name) == "..":
			return errors.New(`"/", "." and ".." may not be removed`)
		case !n.folder():
			return v.remove(p.user, n)
		case !o.has('r') && !o.has('R'):
			return errors.New("is a directory")
		}
		return v.removeAll(p.user, n)
	})
}

func mv(p *proc) int {
	_, names, status, ok := p.options("f")
	switch {
	case !ok:
		return status
	case len(names) < 2:
		return p.usage("mv [-f | -i | -n] [-hv] source target")
	}
	target := names[len(names)-1]
	for _, name := range names[:len(names)-1] {
		err := p.visit(func(v *visit) error {
			from, err := v.find(p.user, p.dir, strings.TrimRight(name, "/"), false)
			if err != nil {
				return err
			}
			to, err := v.into(p, name, target)
			if err != nil {
				return err
			}
			return v.rename(p, from, to)
		})
		if err != nil {
			status = p.fail(exitFailed, "rename %s to %s: %s", name, target, why(err))
		}
	}
	return status
}

// cp copies files, and folders with -R. An existing file keeps its inode, owner and mode.
func cp(p *proc) int {
	o, names, status, ok := p.options("pfR")
	switch {
	case !ok:
		return status
	case len(names) < 2:
		return p.usage("cp [-fp] source_file target_file")
	}
	target := names[len(names)-1]
	for _, name := range names[:len(names)-1] {
		do := p.copyFile
		if o.has('R') {
			do = p.copyTree
		}
		err := do(name, target, o.has('p'))
		switch {
		case errors.Is(err, errNotCopied):
			status = p.fail(exitFailed, "%s %s", name, err)
		case errors.Is(err, errTreeUnmodelled):
			return p.unmodelled("-R " + name)
		case err != nil:
			status = p.fail(exitFailed, "%s: %s", name, why(err))
		}
	}
	return status
}

//lint:ignore ST1005 cp's wording
var errNotCopied = errors.New("is a directory (not copied).")

func (p *proc) copyFile(name, target string, keep bool) error {
	return p.visit(func(v *visit) error {
		from, err := v.find(p.user, p.dir, name, true)
		switch {
		case err != nil:
			return err
		case from.folder():
			return errNotCopied
		}
		to, err := v.into(p, name, target)
		if err != nil {
			return err
		}
		fresh := !to.exists()
		in, err := v.open(p, from.path, os.O_RDONLY, 0)
		if err != nil {
			return err
		}
		defer in.Close() // it is only read
		out, err := v.openToWrite(p, to.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, from.owner.Mode&0o777)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		if err := errors.Join(err, out.Close()); err != nil || !keep {
			return err
		}
		return v.keepAttributes(p, from, to.path, fresh)
	})
}

func (v *visit) keepAttributes(p *proc, from node, to string, fresh bool) error {
	if err := v.session.root.Chtimes(relative(to), time.Time{}, from.info.ModTime()); err != nil {
		return err
	}
	n, err := v.at(to)
	if err != nil {
		return err
	}
	o := n.owner
	if fresh || p.user.uid == 0 || p.user.uid == o.UID {
		if o = from.owner; p.user.uid != 0 {
			o.UID, o.GID = n.owner.UID, n.owner.GID
		}
	}
	v.own(n, o)
	return nil
}

func touch(p *proc) int {
	o, names, status, ok := p.options("c")
	if !ok {
		return status
	}
	return p.each(names, func(v *visit, name string) error {
		n, err := v.resolve(p.user, p.dir, name, true)
		switch {
		case err != nil:
			return err
		case n.exists() && (v.program(n) || !p.user.may(n.owner, n.folder(), toWrite)):
			return syscall.EACCES
		case n.exists():
			if err := v.settle(n.path); err != nil {
				return err
			}
			now := p.now()
			if err := v.session.root.Chtimes(relative(n.path), now, now); err != nil {
				return err
			}
			if n, err = v.at(n.path); err == nil {
				v.note(n, n.path)
			}
			return err
		case o.has('c'):
			return nil
		}
		file, err := v.create(p, n, 0o666)
		if err != nil {
			return err
		}
		return file.Close()
	})
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

func mktemp(p *proc) int {
	o, templates, status, ok := p.options("dqut:")
	if !ok {
		return status
	}
	if o.has('t') || len(templates) == 0 {
		folder := p.env["TMPDIR"]
		if folder == "" {
			folder = "/tmp"
		}
		prefix := o['t']
		if prefix == "" {
			prefix = "tmp"
		}
		templates = append(templates, strings.TrimRight(folder, "/")+"/"+prefix+".XXXXXXXXXX")
	}
	for _, template := range templates {
		stem := strings.TrimRight(template, "X")
		var name string
		err := p.visit(func(v *visit) (err error) {
			err = syscall.EEXIST
			for range 100 {
				name = stem
				for range len(template) - len(stem) {
					name += string(alphabet[rand.IntN(len(alphabet))])
				}
				if err = v.makeTemp(p, name, o); !errors.Is(err, fs.ErrExist) {
					return err
				}
			}
			return err
		})
		if err != nil {
			what := "mkstemp"
			if o.has('d') {
				what = "mkdtemp"
			}
			if o.has('q') {
				return exitFailed
			}
			return p.fail(exitFailed, "%s failed on %s: %s", what, template, why(err))
		}
		p.printf("%s\n", name)
	}
	return status
}

func (v *visit) makeTemp(p *proc, name string, o options) error {
	n, err := v.resolve(p.user, p.dir, name, false)
	switch {
	case err != nil:
		return err
	case n.exists():
		return syscall.EEXIST
	case o.has('u'):
		return nil
	case o.has('d'):
		return v.mkdir(p, n, 0o700)
	}
	file, err := v.create(p, n, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}
