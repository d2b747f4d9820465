package mac

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// shell is one running shell.
type shell struct {
	proc *proc
	kind string // sh, bash or zsh

	mu    sync.Mutex
	files []*os.File // opened for redirections, which the exec builtin keeps open
}

// invocation is a shell's command line.
type invocation struct {
	options []string // for set
	name    string   // $0
	text    string
	params  []string
	stdin   bool // the script is the standard input
}

// runShell is sh, bash and zsh.
func runShell(p *proc) int {
	sh := &shell{proc: p, kind: p.name()}
	call, status, ok := sh.invocation()
	if !ok {
		return status
	}
	if call.stdin {
		text, err := io.ReadAll(p.input())
		if err != nil {
			return p.fail(exitFailed, "%s", why(err))
		}
		own := *p
		own.stdin, call.text, sh.proc = nil, string(text), &own
	}
	defer sh.closeFiles()
	return sh.interpret(call)
}

// invocation reads the command line of the shell.
func (sh *shell) invocation() (call invocation, status int, ok bool) {
	p := sh.proc
	args, command := p.args(), false
	call.name = p.argv[0]
options:
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		option := args[0]
		args = args[1:]
		switch {
		case option == "--":
			break options
		case option == "-o" || option == "+o":
			if len(args) == 0 {
				return call, p.fail(exitUsage, "%s: option requires an argument", option), false
			}
			call.options = append(call.options, option, args[0])
			args = args[1:]
			continue
		case strings.HasPrefix(option, "--"):
			return call, p.unmodelled(option), false
		}
		for _, letter := range option[1:] {
			switch {
			case letter == 'c' && option[0] == '-':
				command = true
			case letter == 's' && option[0] == '-':
				call.stdin = true
			case strings.ContainsRune("euxfn", letter):
				call.options = append(call.options, option[:1]+string(letter))
			default:
				return call, p.unmodelled(option), false
			}
		}
	}
	return sh.operands(call, args, command)
}

func (sh *shell) operands(call invocation, args []string, command bool) (invocation, int, bool) {
	p := sh.proc
	switch {
	case command && len(args) == 0:
		return call, p.fail(exitUsage, "-c: option requires an argument"), false
	case command:
		call.text, call.stdin = args[0], false
		if len(args) > 1 {
			call.name, call.params = args[1], args[2:]
		}
	case call.stdin || len(args) == 0:
		call.stdin, call.params = true, args
	default:
		call.name, call.params = args[0], args[1:]
		var text []byte
		err := p.visit(func(v *visit) (err error) {
			text, err = v.read(p, args[0])
			return err
		})
		if err != nil {
			return call, p.fail(exitNotFound, "%s: %s", args[0], why(err)), false
		}
		call.text = string(text)
	}
	return call, 0, true
}

// interpret runs the script of a command line.
func (sh *shell) interpret(call invocation) int {
	p := sh.proc
	file, err := parsed.parse(sh.kind, call.text)
	if err != nil {
		return sh.refuse(err)
	}
	env := newEnviron(p)
	runner, err := interp.New(
		interp.Env(env),
		func(r *interp.Runner) error { r.Dir = p.dir; return nil }, // interp.Dir would check the real disk
		interp.Params(append(append(call.options, "--"), call.params...)...),
		sh.streams(),
		interp.CallHandler(sh.call),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return sh.exec }),
		interp.OpenHandler(sh.open),
		interp.StatHandler(sh.stat),
		interp.ReadDirHandler2(sh.readDir),
		interp.AccessHandler(sh.access),
	)
	if err != nil {
		return p.fail(exitUsage, "%s", err)
	}
	runner.Reset()
	env.ready = true
	if sh.kind == "zsh" {
		if status, ended := sh.startupFiles(runner); ended {
			return status
		}
	}
	// The tree is shared with other shells, the name is not.
	named := *file
	named.Name = call.name
	return sh.status(runner.Run(p.ctx, &named))
}

// streams returns the process's streams; a nil file must not become a non-nil interface.
func (sh *shell) streams() interp.RunnerOption {
	if sh.proc.stdin == nil {
		return interp.StdIO(nil, sh.proc.stdout, sh.proc.stderr)
	}
	return interp.StdIO(sh.proc.stdin, sh.proc.stdout, sh.proc.stderr)
}

// startupFiles reads what every zsh reads, even if it is not interactive. It reports whether that
// ended the shell.
func (sh *shell) startupFiles(runner *interp.Runner) (status int, ended bool) {
	for _, name := range []string{"/etc/zshenv", sh.proc.env["HOME"] + "/.zshenv"} {
		var text []byte
		err := sh.proc.visit(func(v *visit) (err error) {
			text, err = v.read(sh.proc, name)
			return err
		})
		if err != nil {
			continue // zsh ignores a missing file
		}
		file, err := parsed.parse(sh.kind, string(text))
		if err != nil {
			sh.refuse(err)
			continue
		}
		for _, stmt := range file.Stmts {
			if err := runner.Run(sh.proc.ctx, stmt); runner.Exited() {
				return sh.status(err), true
			}
		}
	}
	return 0, false
}

// refuse reports a script that cannot be run.
func (sh *shell) refuse(err error) int {
	var wrong syntax.ParseError
	var variant syntax.LangError
	if errors.As(err, &wrong) || errors.As(err, &variant) {
		return sh.proc.fail(exitUsage, "syntax error: %s", err)
	}
	return sh.proc.fail(exitUnmodelled, "%s", err)
}

var errTooDeep = errors.New("maximum nesting level exceeded")

// status returns the exit status for the way a script ended.
func (sh *shell) status(err error) int {
	var exit interp.ExitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case sh.proc.ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return exitTerminated
	}
	return sh.proc.fail(exitUsage, "%s", err)
}

// keep records a file to be closed when the shell ends.
func (sh *shell) keep(file *os.File) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if len(sh.files) >= 16 {
		open := sh.files[:0]
		for _, f := range sh.files {
			if _, err := f.Stat(); !errors.Is(err, fs.ErrClosed) {
				open = append(open, f)
			}
		}
		sh.files = open
	}
	sh.files = append(sh.files, file)
}

func (sh *shell) closeFiles() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, f := range sh.files {
		_ = f.Close() // the interpreter has closed most of them already
	}
}
