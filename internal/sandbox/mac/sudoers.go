package mac

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// permit is what the policy says of one command.
type permit struct {
	listed   bool
	password bool
}

// rule is one line of the policy, such as "m1 ALL = (ALL) NOPASSWD: ALL".
var rule = regexp.MustCompile(`^(\S+)\s+(\S+)\s*=\s*(?:\(([^)]*)\)\s*)?((?:(?:NO)?PASSWD|(?:NO)?SETENV):\s*)*(.+)$`)

// sudoPermit reads the policy; the last line that fits decides. A file that can't be trusted or
// read is left out with a warning.
func (p *proc) sudoPermit(target user, command string) (permit, string) {
	if p.user.uid == 0 {
		// The policy lets root do everything; reading it would cost more than most commands.
		return permit{listed: true}, ""
	}
	policy := &policy{proc: p, target: target, command: command}
	err := p.visit(func(v *visit) error {
		policy.read(v, "/private/etc/sudoers")
		return nil
	})
	if err != nil {
		policy.warn("%s", why(err))
	}
	return policy.permit, policy.warnings.String()
}

type policy struct {
	proc     *proc
	target   user
	command  string
	permit   permit
	warnings strings.Builder
}

func (y *policy) warn(format string, args ...any) {
	q := *y.proc
	q.argv, q.stderr = []string{"sudo"}, &y.warnings
	q.complain(format, args...)
}

func (y *policy) read(v *visit, name string) {
	root := v.session.users()[0]
	n, err := v.find(root, "/", name, true)
	switch {
	case err != nil:
		y.warn("unable to open %s: %s", name, why(err))
		return
	case n.owner.UID != 0:
		y.warn("%s is owned by uid %d, should be 0", name, n.owner.UID)
		return
	case n.owner.Mode&0o002 != 0:
		y.warn("%s is world writable", name)
		return
	}
	text, err := v.read(&proc{session: v.session, user: root, dir: "/"}, n.path)
	if err != nil {
		y.warn("unable to open %s: %s", name, why(err))
		return
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if folder, ok := includes(line); ok {
			y.include(v, folder)
			continue
		}
		if line == "" || line[0] == '#' || strings.HasPrefix(line, "Defaults") {
			continue
		}
		m := rule.FindStringSubmatch(line)
		if m == nil {
			y.warn("%s:%d:1: syntax error", name, number)
			return
		}
		y.apply(m)
	}
}

func includes(line string) (folder string, ok bool) {
	for _, word := range []string{"#includedir", "@includedir"} {
		if rest, ok := strings.CutPrefix(line, word+" "); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

// include reads a folder's files, except those whose names mark them as an editor's or a package
// manager's leavings.
func (y *policy) include(v *visit, name string) {
	folder, err := v.find(v.session.users()[0], "/", name, true)
	if err != nil || !folder.folder() {
		return
	}
	files, err := v.list(v.session.users()[0], folder)
	if err != nil {
		return
	}
	for _, file := range files {
		base := path.Base(file.path)
		if file.folder() || strings.Contains(base, ".") || strings.HasSuffix(base, "~") {
			continue
		}
		y.read(v, name+"/"+base)
	}
}

func (y *policy) apply(m []string) {
	who, host, as, tags, commands := m[1], m[2], m[3], m[4], m[5]
	u := y.proc.user
	switch {
	case host != "ALL":
		return
	case who == "ALL" || who == u.name:
	case strings.HasPrefix(who, "%") && slices.Contains(groupNames(u), who[1:]):
	default:
		return
	}
	as, _, _ = strings.Cut(as, ":")
	users := strings.FieldsFunc(as, func(r rune) bool { return r == ',' || r == ' ' })
	if len(users) == 0 {
		users = []string{"root"}
	}
	if !slices.Contains(users, "ALL") && !slices.Contains(users, y.target.name) {
		return
	}
	for one := range strings.SplitSeq(commands, ",") {
		one = strings.TrimSpace(one)
		if one == "ALL" || one == y.command {
			y.permit = permit{listed: true, password: !strings.Contains(tags, "NOPASSWD")}
		}
	}
}
