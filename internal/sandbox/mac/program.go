package mac

import (
	"bytes"
	"errors"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tool is one of the system's programs, or a simulated builtin of the shell.
type tool struct {
	name   string
	folder string // empty: only the shell itself can call it
	run    func(*proc) int
}

func (t tool) path() string { return t.folder + "/" + t.name }

// program is the target of a command name: a tool of the system, or a script on the disk.
type program struct {
	tool   tool
	script string // the script's path, if it is one
}

var (
	errNotFound = errors.New("command not found")
	errIsFolder = errors.New("is a directory")
)

// look finds the program of a command name for the process, along PATH unless it contains a slash.
func (p *proc) look(name string) (program, error) {
	if t, ok := p.stock(name); ok {
		return program{tool: t}, nil
	}
	var found program
	err := p.visit(func(v *visit) error {
		if strings.Contains(name, "/") {
			n, err := v.find(p.user, p.dir, name, true)
			if err != nil {
				return err
			}
			found, err = v.executable(p.user, n)
			return err
		}
		return v.lookPath(p, name, &found)
	})
	return found, err
}

// stock finds one of the system's own programs if nothing on the disk can come before it: none of the
// folders up to it is on the disk. This covers nearly all commands without a visit. The permissions of
// these folders cannot be changed on a Mac.
func (p *proc) stock(name string) (tool, bool) {
	m := p.session.machine
	t, ok := m.tools[path.Base(name)]
	folders, set := p.env["PATH"]
	switch {
	case !ok || t.folder == "":
		return tool{}, false
	case name == t.path():
		folders = t.folder
	case strings.Contains(name, "/"):
		return tool{}, false
	case !set:
		folders = defaultPath
	}
	for folder := range strings.SplitSeq(folders, ":") {
		if !m.bare[folder] {
			return tool{}, false
		}
		var there unix.Stat_t
		if unix.Lstat(m.root+folder, &there) != unix.ENOENT {
			return tool{}, false
		}
		if folder == t.folder {
			return t, true
		}
	}
	return tool{}, false
}

func (v *visit) lookPath(p *proc, name string, found *program) error {
	folders, ok := p.env["PATH"]
	if !ok {
		folders = defaultPath
	}
	result := errNotFound
	for folder := range strings.SplitSeq(folders, ":") {
		if folder == "" {
			folder = "."
		}
		n, err := v.find(p.user, p.dir, folder+"/"+name, true)
		if err != nil {
			continue
		}
		if *found, err = v.executable(p.user, n); err == nil {
			return nil
		}
		if errors.Is(err, syscall.EACCES) {
			result = err
		}
	}
	return result
}

func (v *visit) executable(who user, n node) (program, error) {
	switch {
	case v.program(n):
		return program{tool: v.session.machine.tools[path.Base(n.path)]}, nil
	case n.folder():
		return program{}, errIsFolder
	case !n.plain():
		return program{}, syscall.EACCES
	case !who.may(n.owner, false, toEnter):
		return program{}, syscall.EACCES
	}
	return program{script: n.path}, nil
}

func (f program) path() string {
	if f.script != "" {
		return f.script
	}
	return f.tool.path()
}

// run runs the process's command line and returns its exit status, with a shell's message for a
// command that cannot be run.
// can't be run.
func (p *proc) run() int {
	found, err := p.look(p.argv[0])
	switch {
	case err == nil:
		return p.exec(found)
	case errors.Is(err, errNotFound):
		return p.shellFail(exitNotFound, "%s: command not found", p.argv[0])
	case missing(err):
		return p.shellFail(exitNotFound, "%s: No such file or directory", p.argv[0])
	case errors.Is(err, errIsFolder):
		return p.shellFail(exitNoExec, "%s: is a directory", p.argv[0])
	}
	return p.shellFail(exitNoExec, "%s: %s", p.argv[0], why(err))
}

// shellFail fails in the name of the shell that started the command.
func (p *proc) shellFail(status int, format string, args ...any) int {
	return p.child([]string{"sh"}).fail(status, format, args...)
}

// exec runs a program that was found.
func (p *proc) exec(found program) int {
	if p.depth > maxDepth {
		return p.shellFail(254, "fork: Resource temporarily unavailable")
	}
	if p.ctx.Err() != nil {
		return exitTerminated
	}
	if found.script == "" {
		return p.tool(found.tool)
	}
	text, code, err := p.load(found.script)
	switch {
	case errors.Is(err, errKilled):
		return p.shellFail(exitKilled, "%s: Killed: 9", p.argv[0])
	case err != nil:
		return p.shellFail(exitNoExec, "%s: %s", p.argv[0], why(err))
	case code:
		return p.runCode(found.script, text)
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	interpreter, ok := bytes.CutPrefix(first, []byte("#!"))
	if !ok {
		// The kernel refuses such a file, and the shell then reads it itself.
		interpreter = []byte("/bin/sh")
	}
	words := strings.Fields(string(interpreter))
	switch {
	case len(words) == 0:
		return p.shellFail(exitNoExec, "%s: Exec format error", p.argv[0])
	case strings.Contains(words[0], "/env") && len(words) > 1:
		words = words[1:]
	}
	switch path.Base(words[0]) {
	case "sh", "bash", "zsh", "dash":
		argv := append(words, found.script)
		return runShell(p.child(append(argv, p.args()...)))
	}
	return p.shellFail(exitNoExec, "%s: %s: bad interpreter: not modelled", p.argv[0], words[0])
}
