package mac

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxTries is how often sudo asks for a password.
const maxTries = 3

// sudoCall is a command line of sudo.
type sudoCall struct {
	target                           user
	mute, home, ask, forget, confirm bool // -n -H -S -k -v
	prompt                           string
	argv                             []string
}

func sudo(p *proc) int {
	call, status, ok := p.sudoCall()
	if !ok {
		return status
	}
	if len(call.argv) == 0 && !call.confirm {
		if call.forget {
			return 0 // passwords are not cached between two commands
		}
		return p.usage("sudo [-nHkvS] [-p prompt] [-u user] command [arg ...]")
	}
	child := p.child(call.argv)
	var found program
	var missing error
	if !call.confirm {
		found, missing = child.look(call.argv[0])
	}
	command := found.path()
	if call.confirm {
		command = ""
	}
	permit, warnings, broken := p.sudoPermit(call.target, command)
	_, _ = io.WriteString(p.stderr, warnings)
	if broken {
		return exitFailed
	}
	if !permit.listed {
		return p.refuseSudo(call, command)
	}
	if permit.password {
		if status, ok := p.askPassword(call); !ok {
			return status
		}
	}
	switch {
	case call.confirm:
		return 0
	case errors.Is(missing, errNotFound):
		return p.fail(exitFailed, "%s: command not found", call.argv[0])
	case missing != nil:
		return p.fail(exitFailed, "unable to execute %s: %s", call.argv[0], why(missing))
	}
	child.env = p.sudoEnviron(call, command)
	child.user = call.target
	return child.exec(found)
}

func (p *proc) refuseSudo(call sudoCall, command string) int {
	if call.mute {
		return p.fail(exitFailed, "a password is required")
	}
	if command != "" && p.user.uid == loginUID {
		_, _ = fmt.Fprintf(p.stderr, "Sorry, user %s is not allowed to execute '%s' as %s.\n", p.user.name, strings.Join(call.argv, " "), call.target.name)
		return exitFailed
	}
	_, _ = fmt.Fprintf(p.stderr, "%s is not in the sudoers file.\n", p.user.name)
	return exitFailed
}

func (p *proc) sudoCall() (call sudoCall, status int, ok bool) {
	o, operands, status, ok := p.options("nHkvSp:u:")
	if !ok {
		return call, status, false
	}
	call = sudoCall{mute: o.has('n'), home: o.has('H'), ask: o.has('S'), forget: o.has('k'), confirm: o.has('v'),
		prompt: "Password:", argv: operands}
	if o.has('p') {
		call.prompt = o['p']
	}
	name := "root"
	if o.has('u') {
		name = o['u']
	}
	if call.target, ok = p.session.user(name); !ok {
		return call, p.fail(exitFailed, "unknown user %s", name), false
	}
	// Assignments before the command are rare, and work like options.
	if len(operands) > 0 && strings.Contains(operands[0], "=") {
		return call, p.unmodelled(operands[0]), false
	}
	return call, 0, true
}

// askPassword reads the user's password from the standard input, and leaves the rest of it unread.
func (p *proc) askPassword(call sudoCall) (status int, ok bool) {
	if call.mute {
		return p.fail(exitFailed, "a password is required"), false
	}
	if !call.ask {
		p.complain("a terminal is required to read the password; either use the -S option to read from standard input or configure an askpass helper")
		return p.fail(exitFailed, "a password is required"), false
	}
	p.lecture()
	for try := range maxTries {
		_, _ = io.WriteString(p.stderr, call.prompt)
		line, err := p.line()
		if err != nil && line == "" {
			p.complain("no password was provided")
			if try > 0 {
				p.complain("%s", attempts(try))
			}
			return exitFailed, false
		}
		if p.rightPassword(line) {
			return 0, true
		}
		if try+1 < maxTries {
			_, _ = io.WriteString(p.stderr, "Sorry, try again.\n")
		}
	}
	return p.fail(exitFailed, "%s", attempts(maxTries)), false
}

func attempts(n int) string {
	if n == 1 {
		return "1 incorrect password attempt"
	}
	return fmt.Sprintf("%d incorrect password attempts", n)
}

// line reads one line byte by byte, because the rest belongs to the next reader.
func (p *proc) line() (string, error) {
	var line []byte
	var one [1]byte
	for in := p.input(); ; {
		if _, err := io.ReadFull(in, one[:]); err != nil {
			return string(line), err
		}
		if one[0] == '\n' {
			return string(line), nil
		}
		line = append(line, one[0])
	}
}

// sudoEnviron returns the environment that macOS's policy keeps. It keeps HOME.
func (p *proc) sudoEnviron(call sudoCall, command string) map[string]string {
	env := map[string]string{
		"USER": call.target.name, "LOGNAME": call.target.name, "SHELL": call.target.shell, "PWD": p.dir,
		"SUDO_USER": p.user.name, "SUDO_UID": fmt.Sprint(p.user.uid), "SUDO_GID": fmt.Sprint(p.user.groups[0]),
		"SUDO_COMMAND": strings.Join(append([]string{command}, call.argv[1:]...), " "),
	}
	for name, value := range p.env {
		switch name {
		case "PATH", "HOME", "MAIL", "TERM", "TZ", "LANG", "LANGUAGE", "SSH_AUTH_SOCK", "EDITOR", "DISPLAY":
			env[name] = value
		}
		if strings.HasPrefix(name, "LC_") {
			env[name] = value
		}
	}
	if call.home || env["HOME"] == "" {
		env["HOME"] = call.target.home
	}
	return env
}
