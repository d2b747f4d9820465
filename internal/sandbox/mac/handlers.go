package mac

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"mvdan.cc/sh/v3/interp"
)

// within returns the shell's process at a call of the interpreter.
func (sh *shell) within(ctx context.Context) (*proc, interp.HandlerContext) {
	hc := interp.HandlerCtx(ctx)
	p := *sh.proc
	p.ctx, p.dir, p.stdout, p.stderr = ctx, hc.Dir, hc.Stdout, hc.Stderr
	if n, ok := umaskOf(hc.Env); ok {
		p.umask = fs.FileMode(n)
	}
	p.stdin, _ = hc.Stdin.(*os.File)
	return &p, hc
}

// exec runs a command that is neither a function nor a builtin.
func (sh *shell) exec(ctx context.Context, args []string) error {
	p, hc := sh.within(ctx)
	p.argv, p.env, p.depth = args, exported(hc.Env), p.depth+1
	p.env["PWD"] = hc.Dir
	if !p.session.jobs.begin() {
		return interp.ExitStatus(exitTerminated)
	}
	defer p.session.jobs.end()
	var status int
	if own, ok := p.session.machine.tools[args[0]]; ok && own.folder == "" {
		status = own.run(p)
	} else {
		status = p.run()
	}
	if status != 0 {
		return interp.ExitStatus(status)
	}
	return nil
}

// open opens the target of a redirection.
func (sh *shell) open(ctx context.Context, name string, flag int, _ os.FileMode) (io.ReadWriteCloser, error) {
	p, _ := sh.within(ctx)
	fail := func(err error) error {
		return &os.PathError{Op: sh.kind + ":", Path: name, Err: errors.New(why(err))}
	}
	writes := flag&(os.O_WRONLY|os.O_RDWR) != 0
	if writes {
		if device, ok := p.device(name); ok {
			return device, nil
		}
	}
	if name == os.DevNull {
		// Only with a real file does the interpreter need no pipe and goroutine.
		file, err := os.Open(os.DevNull)
		if err != nil {
			return nil, fail(err)
		}
		sh.keep(file)
		return file, nil
	}
	var file io.ReadWriteCloser
	err := p.visit(func(v *visit) (err error) {
		if writes {
			file, err = v.openToWrite(p, name, flag, 0o666)
		} else {
			file, err = v.open(p, name, flag, 0o666)
		}
		return err
	})
	if err != nil {
		return nil, fail(err)
	}
	switch opened := file.(type) {
	case *os.File:
		sh.keep(opened)
	case *bounded:
		sh.keep(opened.file)
	}
	return file, nil
}

// stat answers test and cd.
func (sh *shell) stat(ctx context.Context, name string, follow bool) (fs.FileInfo, error) {
	p, _ := sh.within(ctx)
	if name == os.DevNull {
		return os.Stat(os.DevNull)
	}
	var n node
	err := p.visit(func(v *visit) (err error) {
		n, err = v.find(p.user, p.dir, name, follow)
		return err
	})
	if err != nil {
		return nil, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	return n.stat(), nil
}

// readDir answers globs.
func (sh *shell) readDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	p, _ := sh.within(ctx)
	var entries []fs.DirEntry
	err := p.visit(func(v *visit) error {
		folder, err := v.find(p.user, p.dir, name, true)
		if err != nil {
			return err
		}
		if !p.user.may(folder.owner, true, toRead) {
			return syscall.EACCES
		}
		entries, err = v.entries(folder.path)
		return err
	})
	return entries, err
}

// access answers the tests -r, -w and -x, and cd.
func (sh *shell) access(ctx context.Context, name string, mode interp.AccessMode) error {
	p, _ := sh.within(ctx)
	if name == os.DevNull {
		return nil
	}
	return p.visit(func(v *visit) error {
		n, err := v.find(p.user, p.dir, name, true)
		if err == nil && !p.user.may(n.owner, n.folder(), access(mode)) {
			err = fs.ErrPermission
		}
		return err
	})
}
