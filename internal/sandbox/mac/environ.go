package mac

import (
	"strconv"

	"mvdan.cc/sh/v3/expand"
)

// umaskName holds the umask among the shell's variables, because the interpreter copies those for a
// subshell. It is not exported.
const umaskName = "__umask"

// environ is a shell's initial environment. During its setup it also answers the interpreter's queries
// of the real machine.
type environ struct {
	vars  map[string]expand.Variable
	ready bool
}

func newEnviron(p *proc) *environ {
	e := &environ{vars: make(map[string]expand.Variable, len(p.env)+4)}
	for name, value := range p.env {
		e.vars[name] = expand.Variable{Set: true, Exported: true, Kind: expand.String, Str: value}
	}
	uid, gid := strconv.Itoa(p.user.uid), strconv.Itoa(p.user.groups[0])
	for name, value := range map[string]string{"UID": uid, "EUID": uid, "GID": gid} {
		e.vars[name] = expand.Variable{Set: true, ReadOnly: true, Kind: expand.String, Str: value}
	}
	e.vars[umaskName] = expand.Variable{Set: true, Kind: expand.String, Str: strconv.FormatUint(uint64(p.umask), 8)}
	return e
}

// Get returns a variable.
func (e *environ) Get(name string) expand.Variable {
	if !e.ready {
		switch name {
		case "TMPDIR":
			// The interpreter opens its own pipes in this folder without the handlers; no path with a
			// NUL byte can be opened.
			return expand.Variable{Set: true, Kind: expand.String, Str: "/\x00"}
		case "HOME":
			return expand.Variable{Set: true, Kind: expand.String}
		}
	}
	return e.vars[name]
}

// Each calls f for every variable.
func (e *environ) Each(f func(name string, v expand.Variable) bool) {
	for name, v := range e.vars {
		if !f(name, v) {
			return
		}
	}
}

// exported returns the environment of a command of the shell.
func exported(env expand.Environ) map[string]string {
	all := map[string]string{}
	for name, v := range env.Each {
		if v.IsSet() && v.Exported && v.Kind == expand.String {
			all[name] = v.String()
		} else {
			delete(all, name)
		}
	}
	return all
}

// umaskOf returns the umask of the shell with these variables.
func umaskOf(env expand.Environ) (uint64, bool) {
	n, err := strconv.ParseUint(env.Get(umaskName).String(), 8, 12)
	return n, err == nil
}
