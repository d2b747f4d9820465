package mac

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"strings"
)

// Exit statuses outside a tool's own.
const (
	exitFailed     = 1
	exitUsage      = 2
	exitUnmodelled = 64
	exitNoExec     = 126
	exitNotFound   = 127
	exitTerminated = 128 + 15
	exitKilled     = 128 + 9
)

// maxDepth limits how deep commands may start commands, as macOS limits a user's processes.
const maxDepth = 64

// proc is one simulated process.
type proc struct {
	session *session
	ctx     context.Context // ends when the process should be killed
	user    user
	argv    []string
	env     map[string]string
	dir     string
	umask   fs.FileMode
	depth   int
	faults  Faults
	under   *launch  // the job it belongs to, nil for a person's process
	alarms  []alarm  // of the watchdogs above it
	part    *command // the command line it belongs to, nil under launchd

	stdin          *os.File // nil: no input
	stdout, stderr io.Writer
}

// child returns a copy of the process with another command line, to be changed further and run.
func (p *proc) child(argv []string) *proc {
	c := *p
	c.argv, c.env, c.depth = argv, maps.Clone(p.env), p.depth+1
	return &c
}

// name returns the process's name in messages.
func (p *proc) name() string { return path.Base(p.argv[0]) }

func (p *proc) args() []string { return p.argv[1:] }

// Output that cannot be written is lost, as with a broken pipe.
func (p *proc) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.stdout, format, args...) }
func (p *proc) complain(format string, args ...any) {
	_, _ = fmt.Fprintf(p.stderr, p.name()+": "+format+"\n", args...)
}

// fail prints an error and returns the exit status.
func (p *proc) fail(status int, format string, args ...any) int {
	p.complain(format, args...)
	return status
}

// unmodelled fails loudly for a feature of the real tool that the simulation lacks.
func (p *proc) unmodelled(what string) int {
	return p.fail(exitUnmodelled, "option not modelled: %s", what)
}

// input returns the process's input, never nil.
func (p *proc) input() io.Reader {
	if p.stdin == nil {
		return bytes.NewReader(nil)
	}
	return p.stdin
}

// visit is session.visit with the process's error.
func (p *proc) visit(f func(*visit) error) error {
	return p.session.visit(func(v *visit) error {
		v.asleep = p.under.asleep()
		return f(v)
	})
}

// open opens a file for reading by its name on the command line; "-" and /dev/stdin are the standard
// input.
func (p *proc) open(name string) (io.ReadCloser, error) {
	switch name {
	case "-", "/dev/stdin":
		return io.NopCloser(p.input()), nil
	case os.DevNull:
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	var file *os.File
	err := p.visit(func(v *visit) (err error) {
		file, err = v.open(p, name, os.O_RDONLY, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

// create opens a file for writing.
func (p *proc) create(name string, flag int) (io.WriteCloser, error) {
	if sink, ok := p.device(name); ok {
		return sink, nil
	}
	var file io.WriteCloser
	err := p.visit(func(v *visit) (err error) {
		file, err = v.openToWrite(p, name, os.O_WRONLY|os.O_CREATE|flag, 0o666)
		return err
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

// device returns the devices that can be written to.
func (p *proc) device(name string) (sink, bool) {
	switch name {
	case os.DevNull:
		return sink{io.Discard}, true
	case "/dev/stdout":
		return sink{p.stdout}, true
	case "/dev/stderr":
		return sink{p.stderr}, true
	}
	return sink{}, false
}

// sink is a writer that does not have to be closed.
type sink struct{ io.Writer }

func (sink) Read([]byte) (int, error) { return 0, io.EOF }
func (sink) Close() error             { return nil }

// inputs calls f for each file on the command line, or once for the standard input. failed reports
// that one of them cannot be opened.
func (p *proc) inputs(names []string, failed int, f func(name string, r io.Reader)) int {
	status := 0
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		file, err := p.open(name)
		if err != nil {
			status = p.fail(failed, "%s: %s", name, why(err))
			continue
		}
		if folder(file) {
			p.complain("%s: Is a directory", name)
			status = failed
		} else {
			f(name, file)
		}
		_ = file.Close() // it is only read
	}
	return status
}

// folder reports whether a folder was opened: it cannot be read.
func folder(r io.Reader) bool {
	file, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.IsDir()
}

// loginEnviron returns sshd's environment for a command.
func loginEnviron(u user) map[string]string {
	return map[string]string{
		"USER": u.name, "LOGNAME": u.name, "HOME": u.home, "SHELL": u.shell,
		"PATH": defaultPath, "PWD": u.home,
	}
}

// defaultPath is the default search path of programs.
const defaultPath = "/usr/bin:/bin:/usr/sbin:/sbin"

// quote quotes a text for the shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
