package mac

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Limits of a job's run. A job that runs longer is treated as a daemon.
const (
	maxAsleep = time.Hour        // of sleep, which is virtual
	maxAwake  = 10 * time.Second // of real time
)

// launch is a process that launchd has started, with its children.
type launch struct {
	target string
	pid    int
	proc   *proc
	found  program
	files  []io.Closer

	cancel context.CancelFunc
	slept  atomic.Int64 // nanoseconds
	waits  bool         // it waits for a folder that is not empty, and checks again after each sleep
	wakes  atomic.Int64 // nanoseconds of the sleep at which a waiting one was left
	stays  atomic.Bool  // it is a daemon

	listener *listener // it is the service of GitHub's runner, with this listener
	exporter string    // where it listens, if it is node_exporter
}

// asleep returns how long a job has slept; nothing else sleeps in virtual time.
func (l *launch) asleep() time.Duration {
	if l == nil {
		return 0
	}
	return time.Duration(l.slept.Load())
}

// loopDepth is the depth of the commands of a job's shell, such as the sleep of its loop.
const loopDepth = 1

// sleep lets a process of a job sleep, and reports whether it woke up again. The sleep of a loop that
// waits for a folder ends the run: the job starts again after the sleep. A script that the loop
// started sleeps normally.
func (l *launch) sleep(d time.Duration, depth int) bool {
	if l.waits && depth == loopDepth {
		l.wakes.Store(int64(d))
		l.stop()
		return false
	}
	if time.Duration(l.slept.Add(int64(d))) <= maxAsleep {
		return true
	}
	l.stay()
	return false
}

// stay makes a job a daemon: it keeps running, and its further work is not modelled.
func (l *launch) stay() {
	l.stays.Store(true)
	l.stop()
}

func (l *launch) stop() {
	if l.cancel != nil {
		l.cancel()
	}
}

// spawn starts a job. It returns what must be run, or nothing for a daemon, of which only the process
// is modelled, and for a job that cannot be started.
func (v *visit) spawn(m *manager, j *job, now time.Time) (*launch, error) {
	if j.PID != 0 {
		return nil, nil
	}
	due := j.Due
	j.Runs++
	j.Kubelet, j.Runner, j.Tailscale, j.Exporter = nil, nil, nil, ""
	j.PID, j.Started, j.Ends, j.Due, j.Stuck = m.newPID(), now, time.Time{}, time.Time{}, false
	l := &launch{target: j.target(), pid: j.PID, waits: len(j.About.Queue) > 0}
	err := v.prepare(l, j)
	if err != nil {
		l.close()
		j.end(ending{Code: exitConfig}, now)
		return nil, nil
	}
	if l.found.script != "" {
		script, err := v.startCode(l, j, due, now)
		if err != nil || !script {
			l.close()
			return nil, err
		}
	}
	j.Busy = true
	return l, nil
}

// startCode starts a program that is not a script, and reports whether it is one. Of most programs
// only the process is modelled.
func (v *visit) startCode(l *launch, j *job, due, now time.Time) (script bool, err error) {
	if shebang, err := v.startsWith(l.found.script, "#!"); err != nil || shebang {
		return shebang, err
	}
	n, err := v.find(v.session.users()[0], "/", l.found.script, true)
	if err != nil {
		return false, err
	}
	if ok, err := v.mayRun(n); err != nil {
		return false, err
	} else if !ok {
		j.dies(ending{Signal: int(syscall.SIGKILL), Reason: killedByKernel}, 0, due, now)
		return false, nil
	}
	if v.violates(j, due, now) {
		return false, nil
	}
	head, err := v.code(n)
	switch {
	case err == nil && len(head) == 0: // the kernel cannot run an empty file
		j.dies(ending{Code: exitConfig}, 0, due, now)
	case err == nil && isKubelet(n.path, head):
		v.startKubelet(l, j, head, due, now)
	case err == nil && codeValue(head, "program") == tailscaledProgram:
		v.startTailscaled(l, j, head, due, now)
	case err == nil && codeValue(head, "program") == exporterProgram:
		if at, text, ok := v.exporterStarts(l.proc); ok {
			j.Exporter = at
		} else {
			_, _ = l.proc.stderr.Write([]byte(text))
			j.dies(ending{Code: 1}, 0, due, now)
		}
	}
	return false, err
}

// killedByKernel is the exit reason of a program with an invalid signature.
const killedByKernel = "OS_REASON_CODESIGNING"

// prepare sets up the process of a job, as xpcproxy does before it runs the program.
func (v *visit) prepare(l *launch, j *job) error {
	about := j.About
	who, ok := v.session.jobUser(j)
	if !ok {
		return os.ErrNotExist
	}
	p := &proc{session: v.session, user: who, argv: about.Args, env: jobEnviron(who, j), dir: "/", umask: fs.FileMode(about.Umask), under: l}
	if about.Dir != "" {
		n, err := v.find(who, "/", about.Dir, true)
		if err != nil || !n.folder() {
			return os.ErrNotExist
		}
		p.dir = about.Dir
	}
	var err error
	if p.stdout, err = v.jobOutput(l, p, about.Stdout); err != nil {
		return err
	}
	if p.stderr, err = v.jobOutput(l, p, about.Stderr); err != nil {
		return err
	}
	l.proc = p
	if !strings.Contains(about.Program, "/") {
		return v.lookPath(p, about.Program, &l.found)
	}
	n, err := v.find(who, p.dir, about.Program, true)
	if err != nil {
		return err
	}
	l.found, err = v.executable(who, n)
	return err
}

// jobUser returns the user that a job runs as.
func (s *session) jobUser(j *job) (user, bool) {
	d, _, _ := splitTarget(j.Domain)
	switch {
	case d.kind != "system":
		return s.user(s.userName(d.uid))
	case j.About.User != "":
		return s.user(j.About.User)
	}
	return s.users()[0], true
}

// jobEnviron returns the environment of a job. Root's own daemons have no HOME.
func jobEnviron(who user, j *job) map[string]string {
	env := map[string]string{"PATH": defaultPath, "XPC_SERVICE_NAME": j.About.Label, "PWD": "/"}
	if j.Domain != "system" || j.About.User != "" {
		env["USER"], env["LOGNAME"], env["HOME"], env["SHELL"] = who.name, who.name, who.home, who.shell
	}
	for name, value := range j.About.Env {
		env[name] = value
	}
	return env
}

// jobOutput opens a file for a job's output with the rights of the job's user. Without those rights,
// the job exits before it starts, and nothing reports why.
func (v *visit) jobOutput(l *launch, p *proc, name string) (io.Writer, error) {
	if name == "" || name == os.DevNull {
		return io.Discard, nil
	}
	as := *p
	as.umask = 0o022
	file, err := v.openToWrite(&as, name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	l.files = append(l.files, file)
	return file, nil
}

func (l *launch) close() {
	for _, f := range l.files {
		_ = f.Close() // output that cannot be written is lost, as with a full disk
	}
}

func (v *visit) startsWith(name, prefix string) (bool, error) {
	v.sawContent(path.Clean(name))
	file, err := v.session.root.Open(relative(path.Clean(name)))
	if err != nil {
		return false, err
	}
	defer file.Close() // it is only read
	first := make([]byte, len(prefix))
	_, err = io.ReadFull(file, first)
	return err == nil && bytes.Equal(first, []byte(prefix)), nil
}

// runJob runs the script or tool of a job to its end, even if the process that reads the machine ends.
func (s *session) runJob(ctx context.Context, l *launch) error {
	defer l.close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxAwake)
	defer cancel()
	forget := context.AfterFunc(s.machine.power.up(), cancel)
	defer forget()
	l.cancel, l.proc.ctx = cancel, ctx
	status := l.proc.exec(l.found)
	how := ending{Code: status}
	if ctx.Err() != nil {
		how = ending{Signal: int(syscall.SIGTERM)}
	}
	stays := l.stays.Load() || ctx.Err() == context.DeadlineExceeded
	return s.visit(func(v *visit) error {
		return v.changeLaunchd(func(m *manager, now time.Time) error {
			j, ok := m.Jobs[l.target]
			if !ok || j.PID != l.pid {
				return nil // it was replaced while it ran
			}
			j.Busy = false
			if d := time.Duration(l.wakes.Load()); d > 0 && !j.leaving() {
				j.PID, j.Due = 0, now.Add(l.asleep()+d) // the next start, which is all that a loop does
				return nil
			}
			if stays && l.listener != nil {
				j.Runner = l.listener
				j.Runner.Node, j.Runner.PID, j.Runner.Started = m.newPID(), m.newPID(), s.machine.real(now)
			}
			if stays {
				j.Exporter = l.exporter
			}
			if !stays || j.leaving() {
				j.Exit, j.Ends = how, now.Add(l.asleep())
				j.plan(false, now)
			}
			m.catchUp(now)
			return nil
		})
	})
}
