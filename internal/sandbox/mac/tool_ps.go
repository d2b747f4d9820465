package mac

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// process is a line of ps: the system's own processes, those of jobs and of tart. Processes of
// people's commands are not among them.
type process struct {
	pid, parent, uid int
	started          time.Time
	args             []string
}

func (p process) command() string { return strings.Join(p.args, " ") }

// name returns the kernel's name of the process.
func (p process) name() string { return path.Base(p.args[0]) }

// processes returns those of the machine, by pid.
func (v *visit) processes() ([]process, error) {
	m, _, err := v.launchd()
	if err != nil {
		return nil, err
	}
	up := v.session.booted()
	all := []process{{pid: 1, uid: 0, args: []string{"/sbin/launchd"}, started: up}}
	const windowServer = "/System/Library/PrivateFrameworks/SkyLight.framework/Resources/WindowServer"
	all = append(all, process{pid: 166, parent: 1, uid: 88, args: []string{windowServer, "-daemon"}, started: up})
	jobs, err := v.jobs(m, "")
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		if j.PID == 0 {
			continue
		}
		one := process{pid: j.PID, parent: 1, args: j.About.Args, started: j.Started}
		if who, ok := v.session.jobUser(j); ok {
			one.uid = who.uid
		}
		if one.started.IsZero() {
			one.started = up
		}
		if j.About.Label == loginwindowLabel && j.Domain == "system" {
			one.args = append(slices.Clone(one.args), "console")
		}
		all = append(append(all, one), j.listenerProcesses(one.uid)...)
	}
	guests, err := v.guests()
	if err != nil {
		return nil, err
	}
	for _, g := range guests {
		if !g.ResultRead {
			all = append(all, process{pid: g.PID, parent: 1, uid: g.UID, args: g.Args, started: g.Started})
		}
	}
	slices.SortFunc(all, func(a, b process) int { return cmp.Compare(a.pid, b.pid) })
	return all, nil
}

// column is a column of ps.
type column struct {
	key, title string
	right      bool
	show       func(by *proc, p process) string
}

func columns() []column {
	return []column{
		{"pid", "PID", true, func(_ *proc, p process) string { return strconv.Itoa(p.pid) }},
		{"ppid", "PPID", true, func(_ *proc, p process) string { return strconv.Itoa(p.parent) }},
		{"uid", "UID", true, func(_ *proc, p process) string { return strconv.Itoa(p.uid) }},
		{"user", "USER", false, func(by *proc, p process) string { return by.session.processUser(p.uid) }},
		{"comm", "COMM", false, func(_ *proc, p process) string { return p.args[0] }},
		{"command", "COMMAND", false, func(_ *proc, p process) string { return p.command() }},
		{"args", "ARGS", false, func(_ *proc, p process) string { return p.command() }},
		{"etime", "ELAPSED", true, func(by *proc, p process) string { return elapsed(by.shown().Sub(p.started)) }},
		{"lstart", "STARTED", false, func(_ *proc, p process) string {
			return p.started.Local().Format("Mon Jan _2 15:04:05 2006")
		}},
	}
}

// processUser names a user, including the window server's own.
func (s *session) processUser(uid int) string {
	if uid == 88 {
		return "_windowserver"
	}
	return s.userName(uid)
}

// elapsed formats a time as ps does: [[days-]hours:]minutes:seconds.
func elapsed(d time.Duration) string {
	n := max(0, int(d.Seconds()))
	text := fmt.Sprintf("%02d:%02d", n/60%60, n%60)
	if n >= 3600 {
		text = fmt.Sprintf("%02d:%s", n/3600%24, text)
	}
	if n >= 86400 {
		text = fmt.Sprintf("%d-%s", n/86400, text)
	}
	return text
}

// psCall is a command line of ps: which processes and which columns.
type psCall struct {
	pids    []string
	columns []column
}

// psCall reads the forms that name their columns, and those of all processes.
func (p *proc) psCall() (call psCall, status int, ok bool) {
	o, operands, status, ok := p.options("aAxewo:p:")
	switch {
	case !ok:
		return call, status, false
	case len(operands) > 0:
		return call, p.unmodelled(operands[0]), false
	case !o.has('o'):
		return call, p.unmodelled("ps without -o"), false
	case !o.has('p') && !o.has('A') && !o.has('e') && !(o.has('a') && o.has('x')):
		return call, p.unmodelled("ps of a terminal's processes"), false
	}
	if o.has('p') {
		call.pids = strings.Split(o['p'], ",")
	}
	for word := range strings.SplitSeq(o['o'], ",") {
		key, title, renamed := strings.Cut(word, "=")
		i := slices.IndexFunc(columns(), func(c column) bool { return c.key == key })
		if i < 0 {
			return call, p.unmodelled("-o " + key), false
		}
		c := columns()[i]
		if renamed {
			c.title = title
		}
		call.columns = append(call.columns, c)
	}
	return call, 0, true
}

func ps(p *proc) int {
	call, status, ok := p.psCall()
	if !ok {
		return status
	}
	var all []process
	if err := p.visit(func(v *visit) (err error) {
		all, err = v.processes()
		return err
	}); err != nil {
		return p.fail(exitFailed, "%s", err)
	}
	if call.pids != nil {
		all = slices.DeleteFunc(all, func(one process) bool { return !slices.Contains(call.pids, strconv.Itoa(one.pid)) })
	}
	p.table(call.columns, all)
	if len(all) == 0 {
		return exitFailed
	}
	return 0
}

// table prints processes in columns; the last one has no fixed width.
func (p *proc) table(columns []column, all []process) {
	titled := slices.ContainsFunc(columns, func(c column) bool { return c.title != "" })
	lines := make([]strings.Builder, len(all)+1)
	for i, c := range columns {
		cells := []string{c.title}
		for _, one := range all {
			cells = append(cells, c.show(p, one))
		}
		width := 5
		for _, cell := range cells {
			width = max(width, len(cell))
		}
		for n, cell := range cells {
			pad := strings.Repeat(" ", width-len(cell))
			switch {
			case c.right:
				cell = pad + cell
			case i+1 < len(columns):
				cell += pad
			}
			if i > 0 {
				cell = " " + cell
			}
			lines[n].WriteString(cell)
		}
	}
	for n := range lines {
		if n > 0 || titled {
			p.printf("%s\n", lines[n].String())
		}
	}
}

func pgrep(p *proc) int {
	o, patterns, status, ok := p.options("fxlqu:")
	switch {
	case !ok:
		return status
	case len(patterns) != 1:
		return p.usage("pgrep [-flqx] [-u euid,...] pattern ...")
	}
	pattern := patterns[0]
	if o.has('x') {
		pattern = "^(?:" + pattern + ")$"
	}
	fits, err := regexp.Compile(pattern)
	if err != nil {
		return p.fail(exitUsage, "%s", err)
	}
	var all []process
	if err := p.visit(func(v *visit) (err error) {
		all, err = v.processes()
		return err
	}); err != nil {
		return p.fail(3, "%s", err)
	}
	status = exitFailed
	for _, one := range all {
		text := one.name()
		if o.has('f') {
			text = one.command()
		}
		if !fits.MatchString(text) || o.has('u') && o['u'] != p.session.processUser(one.uid) && o['u'] != strconv.Itoa(one.uid) {
			continue
		}
		status = 0
		switch {
		case o.has('q'):
		case o.has('l'):
			p.printf("%d %s\n", one.pid, text)
		default:
			p.printf("%d\n", one.pid)
		}
	}
	return status
}
