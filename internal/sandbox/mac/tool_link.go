package mac

import (
	"path"
	"syscall"
)

func ln(p *proc) int {
	o, names, status, ok := p.options("sfnh")
	switch {
	case !ok:
		return status
	case len(names) == 0 || len(names) > 2:
		return p.usage("ln [-sf] source_file [target_file]")
	}
	source, target := names[0], path.Base(names[0])
	if len(names) == 2 {
		target = names[1]
	}
	err := p.visit(func(v *visit) error {
		to, err := v.into(p, source, target)
		if o.has('n') || o.has('h') {
			to, err = v.resolve(p.user, p.dir, target, false)
		}
		if err != nil {
			return err
		}
		if o.has('f') && to.exists() && !to.folder() {
			if err := v.remove(p.user, to); err != nil {
				return err
			}
			to.info = nil
		}
		if o.has('s') {
			return v.symlink(p, source, to)
		}
		from, err := v.find(p.user, p.dir, source, true)
		if err != nil {
			source, target = target, source // the missing one is named
			return err
		}
		return v.link(p, from, to)
	})
	if err != nil {
		return p.fail(exitFailed, "%s: %s", target, why(err))
	}
	return 0
}

func readlink(p *proc) int {
	o, names, status, ok := p.options("fn")
	if !ok {
		return status
	}
	end := "\n"
	if o.has('n') {
		end = ""
	}
	for _, name := range names {
		var text string
		err := p.visit(func(v *visit) error {
			n, err := v.find(p.user, p.dir, name, o.has('f'))
			switch {
			case err != nil:
				return err
			case o.has('f'):
				text = n.path
				return nil
			case !n.link():
				return syscall.EINVAL
			}
			text, err = v.readlink(n)
			return err
		})
		if err != nil {
			status = exitFailed // readlink prints nothing
			continue
		}
		p.printf("%s%s", text, end)
	}
	return status
}
