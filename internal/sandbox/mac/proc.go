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

// Exit statuses that are not a tool's own.
const (
	exitFailed     = 1
	exitUsage      = 2
	exitUnmodelled = 64
	exitNoExec     = 126
	exitNotFound   = 127
	exitTerminated = 128 + 15
	exitKilled     = 128 + 9
)

// maxDepth limits how deep commands may start commands, as macOS bounds a user's processes.
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
	under   *launch  // the job it belongs to, nil for what a person has started
	alarms  []alarm  // of the watchdogs over it
	part    *command // of which it is, nil under launchd

	stdin          *os.File // nil when there is nothing to read
	stdout, stderr io.Writer
}

// child is a process like this one with another command line, to be changed further and run.
func (p *proc) child(argv []string) *proc {
	c := *p
	c.argv, c.env, c.depth = argv, maps.Clone(p.env), p.depth+1
	return &c
}

// name is what the process calls itself in messages.
func (p *proc) name() string { return path.Base(p.argv[0]) }

func (p *proc) args() []string { return p.argv[1:] }

// What can't be written is lost, as with a broken pipe.
func (p *proc) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.stdout, format, args...) }
func (p *proc) complain(format string, args ...any) {
	_, _ = fmt.Fprintf(p.stderr, p.name()+": "+format+"\n", args...)
}

// fail complains and gives the exit status.
func (p *proc) fail(status int, format string, args ...any) int {
	p.complain(format, args...)
	return status
}

// unmodelled fails loudly for what the real tool has and the simulation lacks.
func (p *proc) unmodelled(what string) int {
	return p.fail(exitUnmodelled, "option not modelled: %s", what)
}

// input is what the process reads, never nil.
func (p *proc) input() io.Reader {
	if p.stdin == nil {
		return bytes.NewReader(nil)
	}
	return p.stdin
}

// visit is session.visit with the process's error.
func (p *proc) visit(f func(*visit) error) error { return p.session.visit(f) }

// open opens a file for reading by the name that the command line gives; "-" and /dev/stdin are
// the standard input.
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

// sink is a writer whose end nobody waits for.
type sink struct{ io.Writer }

func (sink) Read([]byte) (int, error) { return 0, io.EOF }
func (sink) Close() error             { return nil }

// inputs calls f for each file that the command line names, or once for the standard input. It
// gives failed when one of them can't be opened.
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
		_ = file.Close() // only read from
	}
	return status
}

// folder reports whether a folder was opened: reading from it fails.
func folder(r io.Reader) bool {
	file, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.IsDir()
}

// loginEnviron is what sshd gives to a command.
func loginEnviron(u user) map[string]string {
	return map[string]string{
		"USER": u.name, "LOGNAME": u.name, "HOME": u.home, "SHELL": u.shell,
		"PATH": defaultPath, "PWD": u.home,
	}
}

// defaultPath is where programs are looked for when nobody says otherwise.
const defaultPath = "/usr/bin:/bin:/usr/sbin:/sbin"

// quote makes one word of a text for the shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
