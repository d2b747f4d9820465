package mac

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// listens returns the listener whose process a job is, or nil.
func (j *job) listens() *listener {
	if j.Runner == nil || j.PID == 0 || j.leaving() {
		return nil
	}
	return j.Runner
}

// hasListener reports whether a listener contacts GitHub now.
func (m *manager) hasListener(now time.Time) bool {
	for _, j := range m.Jobs {
		if l := j.listens(); l != nil && l.due(now) {
			return true
		}
	}
	return false
}

// listening is one listener that contacts GitHub, outside the machine's lock.
type listening struct {
	target, out string
	user        user
	listener    listener
	now         time.Time
}

// tendRunners lets the listeners contact GitHub whose time it is.
func (s *session) tendRunners(ctx context.Context) error {
	var due []listening
	err := s.visit(func(v *visit) error {
		return v.changeLaunchd(func(m *manager, now time.Time) error {
			for _, target := range slices.Sorted(maps.Keys(m.Jobs)) {
				j := m.Jobs[target]
				who, ok := s.jobUser(j)
				if l := j.listens(); ok && l != nil && l.due(now) {
					if !l.Again.IsZero() { // the service starts it again
						l.Again, l.PID, l.Started, l.Since = time.Time{}, m.newPID(), s.machine.real(now), now
						l.Version = v.programVersion(l.Root+"/bin/"+listenerProgram, l.Version)
					}
					l.Polled = now
					due = append(due, listening{target, j.About.Stdout, who, *l, now})
				}
			}
			return nil
		})
	})
	if err != nil || s.machine.world().Runners == nil {
		return err
	}
	for _, one := range due {
		if err := s.tendRunner(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// real returns a time of the machine's clock on the real one.
func (m *Machine) real(now time.Time) time.Time { return now.Add(-m.ahead()).UTC() }

// tendRunner lets one listener contact GitHub.
func (s *session) tendRunner(ctx context.Context, one listening) error {
	verdict, update, err := s.machine.world().Runners.Session(one.listener.Runner, one.now)
	if err != nil {
		return nil // it tries again
	}
	l := one.listener
	if update != "" && l.Listening && l.Runner.Job == "" && one.now.Sub(l.Since) >= updatesAfter {
		if s.updateRunner(ctx, one, update, false) == nil {
			return s.endListener(one.target, l.PID, exitUpdating,
				"Runner update in progress, do not shutdown runner.", "Downloading "+update+" runner", "Runner listener exit because of updating, re-launch runner after successful update")
		}
	}
	return s.visit(func(v *visit) error {
		return v.changeLaunchd(func(m *manager, now time.Time) error {
			j, ok := m.Jobs[one.target]
			if !ok || j.listens() == nil || j.Runner.PID != l.PID {
				return nil // it was replaced meanwhile
			}
			lines, code := j.Runner.enter(verdict, one.now)
			if code >= 0 {
				lines = append(lines, j.listenerEnds(code, one.now)...)
			}
			return v.logListener(j, one.user, lines)
		})
	})
}

// programVersion returns the version of a program, or another one if it cannot be read.
func (v *visit) programVersion(name, otherwise string) string {
	n, err := v.find(v.session.users()[0], "/", name, true)
	if err != nil {
		return otherwise
	}
	head, err := v.code(n)
	if err != nil {
		return otherwise
	}
	return cmp.Or(codeValue(head, "version"), otherwise)
}

// listenerEnds ends the listener of a job, and the job if the service stops for good. It returns what the service
// prints.
func (j *job) listenerEnds(code int, now time.Time) []string {
	l := j.Runner
	l.Fails++
	l.Worker, l.Runner.Job = 0, ""
	if stopsService(code, l.Fails) {
		j.end(ending{}, now)
		return []string{"Runner listener exit with terminated error, stop the service, no retry needed."}
	}
	l.Listening, l.Again = false, now.Add(restartsAfter)
	return []string{"Runner listener exit with retryable error, re-launch runner in 5 seconds."}
}

// endListener ends a listener with an exit code and prints lines.
func (s *session) endListener(target string, pid, code int, lines ...string) error {
	return s.visit(func(v *visit) error {
		return v.changeLaunchd(func(m *manager, now time.Time) error {
			j, ok := m.Jobs[target]
			if !ok || j.listens() == nil || pid != 0 && j.Runner.PID != pid {
				return errNoJob
			}
			who, _ := s.jobUser(j)
			return v.logListener(j, who, append(lines, j.listenerEnds(code, now)...))
		})
	})
}

// logListener adds lines to a job's output and to its listener's own log.
func (v *visit) logListener(j *job, who user, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	p := &proc{session: v.session, user: who, dir: "/", umask: 0o022, stdout: io.Discard, stderr: io.Discard}
	plain, diag := "", ""
	for _, line := range lines {
		plain += line + "\n"
		diag += "[" + clockText(v.session.now()) + " INFO Terminal] WRITE LINE: " + line + "\n"
	}
	var failed error
	if j.About.Stdout != "" {
		failed = v.writeAs(p, j.About.Stdout, []byte(plain), os.O_APPEND, 0o644)
	}
	failed = errors.Join(failed, v.writeAs(p, j.Runner.Diag, []byte(diag), os.O_APPEND, 0o644))
	if errors.Is(failed, syscall.ENOENT) || errors.Is(failed, syscall.ENOSPC) || errors.Is(failed, syscall.EACCES) {
		return nil // output that cannot be written is lost
	}
	return failed
}

// runnerNotes are the listeners of a machine when they were last reported.
type runnerNotes struct {
	All []agent.Runner `json:"listeners"`
}

var runnersRecord = inFirmware("listeners")

// reportRunners reports the listeners to GitHub after a change. Times are real, not the machine's.
func (v *visit) reportRunners(m *manager) error {
	to := v.session.machine.world().Runners
	if to == nil {
		return nil
	}
	var last runnerNotes
	if v.recall(runnersRecord, &last) != nil {
		last = runnerNotes{}
	}
	var running []agent.Runner
	for _, target := range slices.Sorted(maps.Keys(m.Jobs)) {
		if l := m.Jobs[target].listens(); l != nil && m.Halt == nil && l.Again.IsZero() {
			running = append(running, l.Runner)
		}
	}
	if slices.Equal(running, last.All) {
		return nil
	}
	all := slices.Clone(running)
	for _, before := range last.All {
		if !slices.ContainsFunc(running, before.SameRun) {
			before.Ended = time.Now().UTC()
			if m.killed(before) {
				before.Left = v.session.now().Add(sessionStays)
			}
			all = append(all, before)
		}
	}
	if err := v.keep(runnersRecord, runnerNotes{running}); err != nil {
		return err
	}
	return to.Report(all)
}

// killed reports whether a listener that has ended was killed before it could close its session.
func (m *manager) killed(l agent.Runner) bool { return slices.Contains(m.Cut, l.PID) }

// cutOff records that launchd kills a job's listener before it has closed its session, because ExitTimeOut is too short.
func (m *manager) cutOff(j *job) {
	l := j.listens()
	if l == nil || !l.Listening {
		return
	}
	needs := stopsIdle
	if l.Runner.Job != "" {
		needs = stopsBusy
	}
	if j.About.ExitWithin < needs {
		m.Cut = append(m.Cut, l.PID)
	}
}
