package mac

import (
	"errors"
	"path"
	"strings"
)

// runCode runs a program that is not a script.
func (p *proc) runCode(name string, head []byte) int {
	switch {
	case isTart(name, head):
		if p.watched(); p.faults.starting != nil && !p.faults.starting(p) {
			return exitTerminated
		}
		return p.tart(name, head)
	case codeValue(head, "program") == listenerProgram:
		return p.runListener(name, head)
	case codeValue(head, "program") == nodeProgram:
		return p.runNode(name, head)
	case codeValue(head, "program") == tailscaleProgram:
		return p.tailscale(head)
	case codeValue(head, "program") == tailscaledProgram:
		return p.runTailscaled(head)
	case codeValue(head, "program") == exporterProgram:
		return p.runExporter(head)
	case codeValue(head, "program") == "packer" && strings.Join(p.args(), " ") == "version":
		p.printf("Packer v%s\n", codeValue(head, "version"))
		return 0
	case isKubelet(name, head) && p.under == nil:
		return p.unmodelled("a kubelet that launchd has not started")
	case strings.Join(p.args(), " ") == "--version" && codeValue(head, "version") != "":
		p.printf("%s %s\n", path.Base(name), codeValue(head, "version"))
		return 0
	case p.under != nil:
		p.under.stay() // most programs of jobs that are not modelled are daemons
		return exitTerminated
	}
	return p.shellFail(exitNoExec, "%s: cannot execute binary file", p.argv[0])
}

// errKilled is how the kernel ends a program with an invalid signature.
var errKilled = errors.New("killed")

// load returns the text of a script, or the start of a program, if the kernel lets it run.
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
