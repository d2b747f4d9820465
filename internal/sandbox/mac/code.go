package mac

import (
	"errors"
	"path"
	"strings"
)

// runCode becomes a program that is no script.
func (p *proc) runCode(name string, head []byte) int {
	switch {
	case isTart(name, head):
		if p.watched(); p.faults.starting != nil && !p.faults.starting(p) {
			return exitTerminated
		}
		return p.tart(name, head)
	case isKubelet(name, head) && p.under == nil:
		return p.unmodelled("a kubelet that launchd has not started")
	case strings.Join(p.args(), " ") == "--version" && codeValue(head, "version") != "":
		p.printf("%s %s\n", path.Base(name), codeValue(head, "version"))
		return 0
	case p.under != nil:
		p.under.stay() // most programs that a job starts and nobody models are daemons
		return exitTerminated
	}
	return p.shellFail(exitNoExec, "%s: cannot execute binary file", p.argv[0])
}

// errKilled is what the kernel does to a program whose signature does not hold.
var errKilled = errors.New("killed")

// load returns the text of a script, or the beginning of a program, that the kernel lets run.
func (p *proc) load(name string) (text []byte, code bool, err error) {
	err = p.visit(func(v *visit) error {
		n, err := v.find(p.user, "/", name, true)
		if err != nil {
			return err
		}
		if text, err = v.code(n); err != nil {
			return err
		}
		if code = isCode(n.path, text); !code {
			text, err = v.read(p, name)
			return err
		}
		ok, err := v.mayRun(n)
		if err == nil && !ok {
			err = errKilled
		}
		if err == nil {
			err = v.launched(n.path)
		}
		return err
	})
	return text, code, err
}
