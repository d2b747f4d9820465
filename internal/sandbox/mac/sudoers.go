package mac

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// The reported effect of a faulty file in sudoers.d: releases 1.9 skip it, with older ones sudo fails
// for everyone.
const (
	sudoersSwitch  = "sudoers-syntax-error"
	sudoersSkipped = "file-skipped"
	sudoersFatal   = "sudo-fails"
)

const sudoersFile = "/private/etc/sudoers"

// maxSudoersDepth limits how deep files may include files.
const maxSudoersDepth = 128

// permit is the policy's decision on one command.
type permit struct {
	listed   bool
	password bool
}

// sudoPermit reads the policy; the last matching line decides. A file that is unreadable or has wrong
// permissions is skipped with a warning. broken reports that the policy is unusable. An empty command
// is for sudo -v, which asks unless all of the user's rules have NOPASSWD.
func (p *proc) sudoPermit(target user, command string) (is permit, warnings string, broken bool) {
	y := &policy{proc: p, target: target, command: command}
	// The policy gives root all rights, and the switches' file is replaced atomically: no lock is
	// needed.
	if unlocked := (&visit{session: p.session}); p.user.uid == 0 && unlocked.switched(sudoersSwitch) != sudoersFatal {
		return permit{listed: true}, "", false
	}
	err := p.visit(func(v *visit) error {
		y.fatal = v.switched(sudoersSwitch) == sudoersFatal
		y.read(v, sudoersFile)
		return nil
	})
	if err != nil {
		y.warn("%s", why(err))
	}
	if p.user.uid == 0 {
		y.permit = permit{listed: true}
	}
	return y.permit, y.warnings.String(), y.broken
}

type policy struct {
	proc     *proc
	target   user
	command  string
	depth    int  // of included files
	fatal    bool // whether a fault makes the whole policy unusable
	broken   bool
	permit   permit
	warnings strings.Builder
}

func (y *policy) warn(format string, args ...any) {
	q := *y.proc
	q.argv, q.stderr = []string{"sudo"}, &y.warnings
	q.complain(format, args...)
}

func (y *policy) read(v *visit, name string) {
	if y.depth++; y.depth > maxSudoersDepth {
		y.warn("%s: too many levels of includes", name)
		return
	}
	defer func() { y.depth-- }()
	text, complaint := v.sudoersText(name)
	if complaint != "" {
		y.warn("%s", complaint)
		return
	}
	entries, fault := parseSudoers(text)
	if fault != nil {
		y.fault(name, *fault)
		return
	}
	for _, entry := range entries {
		switch {
		case entry.rule != nil:
			y.apply(*entry.rule)
		case entry.file != "":
			y.read(v, entry.file)
		default:
			for _, file := range v.sudoersIn(entry.folder) {
				y.read(v, file)
			}
		}
	}
}

func (y *policy) fault(name string, at sudoersFault) {
	q := *y.proc
	q.stdout = &y.warnings
	if !y.fatal {
		q.printf("%s:%s: syntax error\n", name, at)
		return
	}
	y.broken = true
	q.printf(">>> %s: syntax error near line %d <<<\n", name, at.line)
	y.warn("parse error in %s near line %d", name, at.line)
	y.warn("no valid sudoers sources found, quitting")
	y.warn("unable to initialize policy plugin")
}

// sudoersText returns a policy file, or why sudo skips it.
func (v *visit) sudoersText(name string) (text, complaint string) {
	root := v.session.users()[0]
	n, err := v.find(root, "/", name, true)
	switch {
	case err != nil:
		return "", "unable to open " + name + ": " + why(err)
	case n.owner.UID != 0:
		return "", name + " is owned by uid " + strconv.Itoa(n.owner.UID) + ", should be 0"
	case n.owner.Mode&0o002 != 0:
		return "", name + " is world writable"
	case n.owner.Mode&0o020 != 0 && n.owner.GID != wheel:
		return "", name + " is owned by gid " + strconv.Itoa(n.owner.GID) + ", should be 0"
	}
	data, err := v.read(&proc{session: v.session, user: root, dir: "/"}, n.path)
	if err != nil {
		return "", "unable to open " + name + ": " + why(err)
	}
	return string(data), ""
}

// sudoersIn returns the effective files of a folder, without those of editors and package managers.
func (v *visit) sudoersIn(name string) []string {
	root := v.session.users()[0]
	folder, err := v.find(root, "/", name, true)
	if err != nil || !folder.folder() {
		return nil
	}
	files, err := v.list(root, folder)
	if err != nil {
		return nil
	}
	var counting []string
	for _, file := range files {
		base := path.Base(file.path)
		if !file.folder() && !strings.Contains(base, ".") && !strings.HasSuffix(base, "~") {
			counting = append(counting, name+"/"+base)
		}
	}
	return counting
}

func (y *policy) apply(r sudoersRule) {
	if !slices.Contains(r.hosts, "ALL") || !names(r.users, y.proc.user) {
		return
	}
	for _, c := range r.commands {
		switch {
		case y.command == "":
			y.permit.listed = true
			y.permit.password = y.permit.password || !c.free
		case names(r.as, y.target) && (c.name == "ALL" || c.name == y.command):
			y.permit = permit{listed: true, password: !c.free}
		}
	}
}
