package mac

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// maxStarts limits how many jobs one read of the machine starts.
const maxStarts = 200

// maxStartsOver limits how often a machine restarts at one read, if its own jobs restart it.
const maxStartsOver = 3

// settleLock is held by the process that runs what has become due, so that each thing happens once.
const settleLock = "launchd.lock"

// settle does what has become due since the last read of the machine: starts of jobs, a restart. Times
// are computed from stored ones, since nothing runs in between; a job that missed many of its times
// runs once. Jobs do not call settle: they run in it.
func (s *session) settle(ctx context.Context) error {
	if idle, err := s.machine.idle(); idle || err != nil {
		return err
	}
	return s.runDue(ctx)
}

// idle reports, without the machine's lock, that nothing is due. Every read of the machine calls it.
func (m *Machine) idle() (bool, error) {
	held, err := m.pending()
	if held == nil || err != nil {
		return err == nil, err
	}
	now := time.Now().Add(m.ahead())
	held.catchUp(now)
	return !held.anything(now) && !held.hasListener(now) && !(held.hasKubelet() && m.hasPods()), nil
}

// hasKubelet reports whether a kubelet runs.
func (m *manager) hasKubelet() bool {
	for _, j := range m.Jobs {
		if j.Kubelet != nil && j.PID == j.Kubelet.PID {
			return true
		}
	}
	return false
}

// anything reports whether something may be due.
func (m *manager) anything(now time.Time) bool {
	if m.Halt != nil {
		return true
	}
	for _, j := range m.Jobs {
		if j.Busy || j.due(now) || j.waitsForPath() || j.collects(now) {
			return true
		}
	}
	return false
}

func (j *job) due(now time.Time) bool { return j.PID == 0 && !j.Due.IsZero() && !now.Before(j.Due) }

func (j *job) waitsForPath() bool {
	return j.PID == 0 && j.Due.IsZero() && !j.Stuck && len(j.About.Keep.Paths)+len(j.About.Queue) > 0
}

// runDue does what is due, one thing after the other and each job at most once, also one that starts
// itself again.
func (s *session) runDue(ctx context.Context) (err error) {
	m := s.machine
	m.settling.Lock()
	defer m.settling.Unlock()
	lock, err := os.OpenFile(filepath.Join(m.dir, settleLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("start jobs on the machine in %s: %w", m.dir, err)
	}
	defer lock.Close() // which releases it
	if err := flock(lock, unix.LOCK_EX); err != nil {
		return fmt.Errorf("start jobs on the machine in %s: %w", m.dir, err)
	}
	for range maxStartsOver {
		halted, err := s.runOnce(ctx)
		if err != nil || !halted {
			return err
		}
	}
	return fmt.Errorf("%w: a job restarts it at every start", ErrDown)
}

// runOnce starts a machine that is down, does what is due, and reports whether a job has shut it down.
func (s *session) runOnce(ctx context.Context) (halted bool, err error) {
	started := map[string]bool{}
	booted, err := s.goUp()
	if err != nil {
		return false, err
	}
	if err := s.runJobs(ctx, started); err != nil {
		return false, err
	}
	if booted {
		if err := s.restartLoginwindow(s.bySystem(ctx)); err != nil {
			return false, fmt.Errorf("start loginwindow on the machine in %s: %w", s.machine.dir, err)
		}
		if err := s.runJobs(ctx, started); err != nil {
			return false, err
		}
	}
	if err := errors.Join(s.tend(ctx), s.collect(), s.tendRunners(ctx), s.tendTailnet()); err != nil {
		return false, err
	}
	held, err := s.machine.pending()
	return held != nil && held.Halt != nil, err
}

// bySystem returns a root process that the system itself has started.
func (s *session) bySystem(ctx context.Context) *proc {
	root := s.users()[0]
	return &proc{session: s, ctx: ctx, user: root, argv: []string{"launchd"}, env: map[string]string{"PATH": defaultPath}, dir: "/",
		umask: 0o022, under: &launch{}, stdout: io.Discard, stderr: io.Discard}
}

func (s *session) runJobs(ctx context.Context, started map[string]bool) error {
	for range maxStarts {
		var next *launch
		err := s.visit(func(v *visit) error {
			return v.changeLaunchd(func(m *manager, now time.Time) (err error) {
				next, err = v.startNext(m, now, started)
				return err
			})
		})
		if err != nil {
			return fmt.Errorf("start jobs on the machine in %s: %w", s.machine.dir, err)
		}
		if next == nil {
			return nil
		}
		if err := s.runJob(ctx, next); err != nil {
			return fmt.Errorf("run %s on the machine in %s: %w", next.target, s.machine.dir, err)
		}
	}
	return nil
}

// startNext starts the due jobs up to the first whose script or tool must be run, and returns that
// one.
func (v *visit) startNext(m *manager, now time.Time, started map[string]bool) (*launch, error) {
	if m.Halt != nil {
		return nil, nil // nothing starts any more
	}
	for _, j := range m.Jobs {
		if j.Busy {
			// The process that ran it has died: otherwise it would hold the lock.
			j.end(ending{Signal: 9}, now)
		}
		if j.waitsForPath() && (v.pathsHold(j.About.Keep.Paths) || v.filled(j.About.Queue)) {
			j.Due = now
			if soonest := j.Started.Add(j.About.Throttle); !j.Started.IsZero() && soonest.After(now) {
				j.Due = soonest
			}
		}
	}
	targets := slices.SortedFunc(maps.Keys(m.Jobs), func(a, b string) int {
		return cmp.Or(m.Jobs[a].Due.Compare(m.Jobs[b].Due), cmp.Compare(a, b))
	})
	for _, target := range targets {
		j := m.Jobs[target]
		if !j.due(now) || started[target] {
			continue
		}
		started[target] = true
		if next, err := v.spawn(m, j, now); next != nil || err != nil {
			return next, err
		}
	}
	return nil, nil
}

// filled reports whether any of the folders has content.
func (v *visit) filled(folders []string) bool {
	root := v.session.users()[0]
	return slices.ContainsFunc(folders, func(name string) bool {
		n, err := v.find(root, "/", name, true)
		if err != nil || !n.folder() {
			return false
		}
		in, err := v.list(root, n)
		return err == nil && len(in) > 0
	})
}

// pathsHold reports whether one of the paths exists, or is missing, as required.
func (v *visit) pathsHold(paths map[string]bool) bool {
	for name, wanted := range paths {
		if _, err := v.find(v.session.users()[0], "/", name, true); (err == nil) == wanted {
			return true
		}
	}
	return false
}
