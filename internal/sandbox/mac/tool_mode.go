package mac

import (
	"io/fs"
	"strings"
	"syscall"
)

func chmod(p *proc) int {
	o, args, status, ok := p.modeOptions("R")
	switch {
	case !ok:
		return status
	case len(args) < 2:
		return p.usage("chmod [-fhv] [-R [-H | -L | -P]] mode file ...")
	}
	change, ok := modeChange(args[0], p.umask)
	if !ok {
		return p.fail(exitFailed, "Invalid file mode: %s", args[0])
	}
	for _, name := range args[1:] {
		err := p.visit(func(v *visit) error {
			n, err := v.find(p.user, p.dir, name, true)
			if err != nil {
				return err
			}
			set := func(n node) error {
				return v.chmod(p.user, n, func(o owner) owner { return change(o, n.folder()) })
			}
			if o.has('R') {
				return v.walk(n, set)
			}
			return set(n)
		})
		switch {
		case err == nil:
		case why(err) == why(syscall.EPERM):
			status = p.fail(exitFailed, "Unable to change file mode on %s: %s", name, why(err))
		default:
			status = p.fail(exitFailed, "%s: %s", name, why(err))
		}
	}
	return status
}

// modeOptions is options, except that a mode such as -w is not an option.
func (p *proc) modeOptions(spec string) (options, []string, int, bool) {
	if len(p.args()) > 0 && strings.HasPrefix(p.argv[1], "-") && strings.Trim(p.argv[1], "-rwxXst,+=") == "" && p.argv[1] != "--" {
		return options{}, p.args(), 0, true
	}
	return p.options(spec)
}

// modeChange reads a mode in octal or symbols, such as 0644 or u=rw,go-w.
func modeChange(text string, umask fs.FileMode) (func(o owner, folder bool) owner, bool) {
	if n, ok := parseOctal(text); ok {
		return func(o owner, _ bool) owner { o.Mode = fs.FileMode(n); return o }, true
	}
	var steps []func(fs.FileMode, bool) fs.FileMode
	for clause := range strings.SplitSeq(text, ",") {
		at := strings.IndexAny(clause, "+-=")
		if at < 0 || strings.Trim(clause[:at], "ugoa") != "" || strings.Trim(clause[at+1:], "rwxXst") != "" {
			return nil, false
		}
		who, sign, what := clause[:at], clause[at], clause[at+1:]
		steps = append(steps, func(mode fs.FileMode, folder bool) fs.FileMode {
			mask, bits := classes(who), permissions(what, mode, folder)
			if who == "" {
				mask, bits = 0o7777, bits&^umask
			}
			switch sign {
			case '+':
				return mode | bits&mask
			case '-':
				return mode &^ (bits & mask)
			}
			return mode&^(mask&0o777) | bits&mask
		})
	}
	return func(o owner, folder bool) owner {
		for _, step := range steps {
			o.Mode = step(o.Mode, folder)
		}
		return o
	}, true
}

func classes(who string) fs.FileMode {
	var mask fs.FileMode
	for _, c := range who {
		switch c {
		case 'u':
			mask |= 0o4700
		case 'g':
			mask |= 0o2070
		case 'o':
			mask |= 0o1007
		case 'a':
			mask |= 0o7777
		}
	}
	return mask
}

func permissions(what string, mode fs.FileMode, folder bool) fs.FileMode {
	var bits fs.FileMode
	for _, c := range what {
		switch {
		case c == 'r':
			bits |= 0o444
		case c == 'w':
			bits |= 0o222
		case c == 'x', c == 'X' && (folder || mode&0o111 != 0):
			bits |= 0o111
		case c == 's':
			bits |= 0o6000
		case c == 't':
			bits |= sticky
		}
	}
	return bits
}

func chown(p *proc) int {
	o, args, status, ok := p.options("Rh")
	switch {
	case !ok:
		return status
	case len(args) < 2:
		return p.usage("chown [-fhv] [-R [-H | -L | -P]] owner[:group] file ...")
	}
	name, groupText, hasGroup := strings.Cut(args[0], ":")
	uid, gid := -1, -1
	if name != "" {
		if uid, ok = p.session.uidOf(name); !ok {
			return p.fail(exitFailed, "%s: illegal user name", name)
		}
	}
	if hasGroup && groupText != "" {
		if gid, ok = gidOf(groupText); !ok {
			return p.fail(exitFailed, "%s: illegal group name", groupText)
		}
	}
	return p.each(args[1:], func(v *visit, name string) error {
		n, err := v.find(p.user, p.dir, name, !o.has('h') && !o.has('R'))
		if err != nil {
			return err
		}
		set := func(n node) error { return v.chown(p.user, n, uid, gid) }
		if o.has('R') {
			return v.walk(n, set)
		}
		return set(n)
	})
}

// chown changes a file's owner, which only root may; the owner may choose among the owner's groups.
func (v *visit) chown(who user, n node, uid, gid int) error {
	o := n.owner
	if uid >= 0 {
		o.UID = uid
	}
	if gid >= 0 {
		o.GID = gid
	}
	mine := who.uid == n.owner.UID && o.UID == n.owner.UID && who.inGroup(o.GID)
	if who.uid != 0 && !mine || v.program(n) {
		return syscall.EPERM
	}
	v.own(n, o)
	return nil
}
