package mac

import (
	"io"
	"io/fs"
)

// visudo checks a policy; editing is not modelled.
func visudo(p *proc) int {
	o, operands, status, ok := p.options("cqf:")
	switch {
	case !ok:
		return status
	case !o.has('c') || len(operands) > 0:
		return p.unmodelled("visudo without -c")
	}
	c := &sudoersCheck{proc: p, quiet: o.has('q'), whole: !o.has('f')}
	name := "/etc/sudoers"
	if !c.whole {
		name = o['f']
	}
	text, err := c.open(name)
	if err != nil {
		return p.fail(exitFailed, "unable to open %s: %s", name, why(err))
	}
	c.check(name, text)
	return c.status
}

// sudoersCheck reads a policy with all files that it includes.
type sudoersCheck struct {
	proc   *proc
	quiet  bool
	whole  bool // the system's own policy, whose files' owners and modes are checked too
	depth  int
	status int
}

func (c *sudoersCheck) open(name string) ([]byte, error) {
	file, err := c.proc.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() // it is only read
	return io.ReadAll(file)
}

func (c *sudoersCheck) check(name string, text []byte) {
	p := c.proc
	if name == "-" {
		name = "stdin"
	}
	entries, fault := parseSudoers(string(text))
	if fault != nil {
		c.status = exitFailed
		_, _ = io.WriteString(p.stderr, name+":"+fault.String()+": syntax error\n")
		return
	}
	if c.whole && !c.owned(name) {
		c.status = exitFailed
		return
	}
	if !c.quiet {
		p.printf("%s: parsed OK\n", name)
	}
	if c.depth++; c.depth > maxSudoersDepth {
		c.status = p.fail(exitFailed, "%s: too many levels of includes", name)
		return
	}
	for _, entry := range entries {
		c.include(entry)
	}
	c.depth--
}

func (c *sudoersCheck) include(entry sudoersEntry) {
	files := []string{entry.file}
	switch {
	case entry.rule != nil:
		return
	case entry.folder != "":
		if err := c.proc.visit(func(v *visit) error { files = v.sudoersIn(entry.folder); return nil }); err != nil {
			c.status = c.proc.fail(exitFailed, "%s: %s", entry.folder, why(err))
			return
		}
	}
	for _, file := range files {
		text, err := c.open(file)
		if err != nil {
			c.status = c.proc.fail(exitFailed, "unable to open %s: %s", file, why(err))
			continue
		}
		c.check(file, text)
	}
}

// sudoersMode is the only mode that visudo accepts; sudo itself accepts more.
const sudoersMode fs.FileMode = 0o440

// owned reports a file that does not belong to root only.
func (c *sudoersCheck) owned(name string) bool {
	var n node
	err := c.proc.visit(func(v *visit) (err error) {
		n, err = v.find(c.proc.user, "/", name, true)
		return err
	})
	reason := ""
	switch {
	case err != nil:
		reason = why(err)
	case n.owner.UID != 0 || n.owner.GID != wheel:
		reason = "wrong owner (uid, gid) should be (0, 0)"
	case n.owner.Mode.Perm() != sudoersMode:
		reason = "bad permissions, should be mode 0440"
	}
	if reason != "" {
		_, _ = io.WriteString(c.proc.stderr, name+": "+reason+"\n")
	}
	return reason == ""
}
