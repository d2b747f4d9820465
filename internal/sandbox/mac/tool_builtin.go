package mac

import (
	"strings"

	"mvdan.cc/sh/v3/interp"
)

func succeed(*proc) int  { return 0 }
func failTool(*proc) int { return exitFailed }

// refuse reports what a shell can do and the simulation can't.
func refuse(p *proc) int {
	return p.shellFail(exitUnmodelled, "option not modelled: %s", strings.TrimPrefix(p.argv[1], "not modelled: "))
}

// asBuiltin runs a builtin of the shell as the program of the same name.
func asBuiltin(p *proc) int {
	return runShell(p.child(append([]string{"/bin/bash", "-c", quote(p.name()) + ` "$@"`, p.name()}, p.args()...)))
}

// shellEcho is echo as macOS's sh has it: no options, and escapes are always read.
func shellEcho(p *proc) int {
	text, end := strings.Join(p.args(), " "), "\n"
	if before, _, ok := strings.Cut(text, `\c`); ok {
		text, end = before, ""
	}
	p.printf("%s%s", unescape(text), end)
	return 0
}

func unescape(text string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\a`, "\a", `\b`, "\b", `\f`, "\f", `\v`, "\v").Replace(text)
}

// echoProgram is /bin/echo: -n, and no escapes.
func echoProgram(p *proc) int {
	args, end := p.args(), "\n"
	if len(args) > 0 && args[0] == "-n" {
		args, end = args[1:], ""
	}
	p.printf("%s%s", strings.Join(args, " "), end)
	return 0
}

func pwd(p *proc) int {
	dir := p.dir
	for _, arg := range p.args() {
		switch arg {
		case "-L":
			dir = p.dir
		case "-P":
			err := p.visit(func(v *visit) error {
				n, err := v.find(p.user, p.dir, ".", true)
				dir = n.path
				return err
			})
			if err != nil {
				return p.fail(exitFailed, "%s", why(err))
			}
		default:
			return p.unmodelled(arg)
		}
	}
	p.printf("%s\n", dir)
	return 0
}

func showUmask(p *proc) int {
	p.printf("%04o\n", uint32(p.umask))
	return 0
}

// commandV prints what each name would run.
func commandV(p *proc) int {
	status := 0
	for _, name := range p.args() {
		if interp.IsBuiltin(name) {
			p.printf("%s\n", name)
		} else if found, err := p.look(name); err != nil {
			status = exitFailed
		} else if strings.Contains(name, "/") {
			p.printf("%s\n", name)
		} else {
			p.printf("%s\n", found.path())
		}
	}
	return status
}

func typeOf(p *proc) int {
	status := 0
	for _, name := range p.args() {
		if strings.HasPrefix(name, "-") {
			return p.unmodelled(name)
		}
		if interp.IsBuiltin(name) {
			p.printf("%s is a shell builtin\n", name)
		} else if found, err := p.look(name); err == nil {
			p.printf("%s is %s\n", name, found.path())
		} else {
			status = p.shellFail(exitFailed, "type: %s: not found", name)
		}
	}
	return status
}

// hash remembers nothing, but finds out whether there is such a command.
func hash(p *proc) int {
	status := 0
	for _, name := range p.args() {
		if name == "-r" || interp.IsBuiltin(name) {
			continue
		}
		if _, err := p.look(name); err != nil {
			status = p.shellFail(exitFailed, "hash: %s: not found", name)
		}
	}
	return status
}
