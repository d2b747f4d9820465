package mac

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/macfleet/macfleet/internal/sandbox/agent"
)

// manager is launchd's memory. There is no daemon: each read of the machine computes from stored times
// what has happened since.
type manager struct {
	Jobs     map[string]*job   `json:"jobs"`               // by service target, such as system/com.example.d
	Unloaded []string          `json:"unloaded,omitempty"` // labels of the system's own services that were booted out
	NextPID  int               `json:"next_pid"`
	Login    int               `json:"login_pid,omitempty"` // of loginwindow, after a kickstart
	Fresh    map[string]string `json:"fresh,omitempty"`     // files that were refused as too new, with their stamps
	Halt     *halt             `json:"halt,omitempty"`
	Cut      []int             `json:"cut,omitempty"` // pids of listeners that were killed before they closed their sessions
}

// halt is a machine that is restarting.
type halt struct {
	Until time.Time `json:"until"` // when it is up
}

// job is a loaded job.
type job struct {
	Domain string      `json:"domain"` // system, gui/501 or user/501
	Path   string      `json:"path"`   // of its property list
	About  description `json:"about"`  // read by launchd once, when the job was loaded

	PID     int       `json:"pid,omitempty"` // 0 = no process
	Started time.Time `json:"started,omitzero"`
	Ends    time.Time `json:"ends,omitzero"`  // when the process has ended; zero = it keeps running
	Exit    ending    `json:"exit,omitzero"`  // its exit at that time
	Busy    bool      `json:"busy,omitempty"` // its script is being run

	Runs  int       `json:"runs"`
	Last  *ending   `json:"last,omitempty"` // of the previous process
	Due   time.Time `json:"due,omitzero"`   // when launchd starts it; zero = no start is planned
	Gone  time.Time `json:"gone,omitzero"`  // it was booted out; the label is free at this time
	Stuck bool      `json:"stuck,omitempty"`
	Off   bool      `json:"off,omitempty"` // its background item is disallowed

	Pin      *pin `json:"pin,omitempty"`      // its program when it was loaded
	Outdated bool `json:"outdated,omitempty"` // launchd reports that the pin needs an update

	Kubelet *agent.Kubelet `json:"kubelet,omitempty"` // the process, if it is a kubelet
	Tart    string         `json:"tart,omitempty"`    // the program with which that kubelet runs virtual machines
	Home    string         `json:"home,omitempty"`    // the folder of that kubelet's virtual machines
	Swept   time.Time      `json:"swept,omitzero"`    // its last collection of virtual machines without a Pod

	Runner *listener `json:"runner,omitempty"` // the process, if it is GitHub's runner

	Tailscale *tailscaled `json:"tailscaled,omitempty"` // the process, if it is tailscaled
	Exporter  string      `json:"exporter,omitempty"`   // where the process listens, if it is node_exporter
}

// ending is how a process ended: by itself or by a signal.
type ending struct {
	Code   int    `json:"code"`
	Signal int    `json:"signal,omitempty"`
	Reason string `json:"reason,omitempty"` // the kernel's, unless a process sent the signal
}

// Times of launchd.
const (
	throttle          = 10 * time.Second // ThrottleInterval's default, from spawn to spawn
	exitTimeout       = 5 * time.Second  // ExitTimeOut's default for a system job
	manualExitTimeout = 20 * time.Second // the default in launchd.plist(5)
)

// exitConfig is EX_CONFIG: launchd could not set the process up.
const exitConfig = 78

// firstPID is above those of the system's own processes.
const firstPID = 600

func (j *job) target() string { return j.Domain + "/" + j.About.Label }

// leaving reports whether the job was booted out and its process is still ending.
func (j *job) leaving() bool { return !j.Gone.IsZero() }

// state returns the job's state in launchctl's words.
func (j *job) state() string {
	switch {
	case j.leaving():
		return "SIGTERMed"
	case j.PID != 0:
		return "running"
	case !j.Due.IsZero() && j.About.Interval == 0:
		return "spawn scheduled"
	}
	return "not running"
}

// launchd returns the present content of launchd's memory.
func (v *visit) launchd() (*manager, time.Time, error) {
	m, now := &manager{}, v.session.instant()
	held, err := decoded[manager](v.session.machine, launchdRecord, json.Unmarshal)
	if err != nil {
		return nil, now, fmt.Errorf("launchd's jobs: %w", err)
	}
	if held != nil {
		m = held.clone()
	}
	for at := range m.changesAfter(now) {
		v.session.machine.untilThen(at)
	}
	m.catchUp(now)
	m.release(now.Add(v.asleep))
	return m, now, nil
}

var launchdRecord = inMemory("launchd")

// clone returns a copy that may be changed. A job's description never changes.
func (m *manager) clone() *manager {
	c := *m
	c.Unloaded, c.Cut = slices.Clone(m.Unloaded), slices.Clone(m.Cut)
	c.Jobs, c.Fresh = maps.Clone(m.Jobs), maps.Clone(m.Fresh)
	for target, j := range c.Jobs {
		one := *j
		if one.Kubelet != nil {
			kubelet := *one.Kubelet
			one.Kubelet = &kubelet
		}
		if one.Runner != nil {
			runner := *one.Runner
			one.Runner = &runner
		}
		if one.Tailscale != nil {
			daemon := *one.Tailscale
			one.Tailscale = &daemon
		}
		c.Jobs[target] = &one
	}
	return &c
}

// changeLaunchd lets f change launchd's memory, which is written if f succeeds.
func (v *visit) changeLaunchd(f func(*manager, time.Time) error) error {
	m, now, err := v.launchd()
	if err != nil {
		return err
	}
	before := m.clone()
	if err := f(m, now); err != nil {
		return err
	}
	if !reflect.DeepEqual(before, m) {
		if err := v.keep(launchdRecord, m); err != nil {
			return err
		}
	}
	return errors.Join(v.announce(m), v.reportRunners(m), v.reportTailnet(m))
}

// pending returns the jobs without the machine's lock, or nil if none was ever loaded. Every read of
// the machine calls it.
func (m *Machine) pending() (*manager, error) {
	held, err := decoded[manager](m, launchdRecord, json.Unmarshal)
	if err != nil {
		return nil, fmt.Errorf("launchd's jobs on the machine in %s: %w; fix: delete %s", m.dir, err, filepath.Join(m.dir, string(launchdRecord)))
	}
	if held == nil {
		return nil, nil
	}
	return held.clone(), nil
}

// changesAfter returns when the passage of time will change something, see catchUp and release.
func (m *manager) changesAfter(now time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for _, j := range m.Jobs {
			for _, at := range []time.Time{j.Ends, j.Gone} {
				if at.After(now) && !yield(at) {
					return
				}
			}
		}
	}
}

// catchUp applies the passage of time: processes end and labels become free.
func (m *manager) catchUp(now time.Time) {
	for _, j := range m.Jobs {
		if j.PID != 0 && !j.Busy && !j.Ends.IsZero() && !now.Before(j.Ends) {
			last := j.Exit
			j.PID, j.Last = 0, &last
		}
	}
	m.release(now)
}

// release frees the labels of jobs that were booted out and have ended. A job that sleeps until a label is free sees that
// happen, though its sleep takes no time on the machine.
func (m *manager) release(now time.Time) {
	for target, j := range m.Jobs {
		if j.leaving() && (j.PID == 0 || !now.Before(j.Gone)) {
			delete(m.Jobs, target)
		}
	}
}

// newPID never returns the same number twice between two boots.
func (m *manager) newPID() int {
	m.NextPID = max(m.NextPID, firstPID) + 1
	return m.NextPID
}

// plan sets when launchd starts a job whose process ends, or which was just loaded.
func (j *job) plan(loaded bool, now time.Time) {
	d := j.About
	j.Due = time.Time{}
	ended := j.Ends
	if loaded {
		ended = now
	}
	soonest := ended
	if !j.Started.IsZero() && j.Started.Add(d.Throttle).After(ended) {
		soonest = j.Started.Add(d.Throttle)
	}
	switch {
	case j.leaving() || j.Stuck || j.Off:
	case loaded && d.RunAtLoad, !loaded && d.Keep.after(j.Exit):
		j.Due = soonest
	case d.Interval > 0:
		from := j.Started
		if from.IsZero() {
			from = now
		}
		if j.Due = from.Add(d.Interval); j.Due.Before(ended) {
			j.Due = ended
		}
	}
}

// end ends a job's process.
func (j *job) end(how ending, now time.Time) {
	if j.PID == 0 {
		return
	}
	j.Busy, j.Ends, j.Exit, j.Last, j.PID = false, now, how, &how, 0
	j.plan(false, now)
}

var errNoJob = errors.New("no such job is loaded")

// EndJob ends the process of a job, such as system/com.example.d, with an exit code or, if signal is
// not 0, by a signal. launchd then follows the job's description.
func (m *Machine) EndJob(target string, code, signal int) error {
	return m.changeJob(target, func(j *job, now time.Time) { j.end(ending{Code: code, Signal: signal}, now) })
}

// StickJob ends the process of a job cleanly, and launchd does not restart it despite the job's
// description: hosts were seen with such jobs, loaded and without a process until someone kickstarted
// them.
func (m *Machine) StickJob(target string) error {
	return m.changeJob(target, func(j *job, now time.Time) {
		j.Stuck = true
		j.end(ending{}, now)
		j.Due = time.Time{}
	})
}

func (m *Machine) changeJob(target string, change func(*job, time.Time)) error {
	err := m.asRoot(func(v *visit, _ *proc) error {
		return v.changeLaunchd(func(held *manager, now time.Time) error {
			j, ok := held.Jobs[target]
			if !ok {
				return errNoJob
			}
			change(j, now)
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("the job %s of the machine in %s: %w", target, m.dir, err)
	}
	return nil
}

// Settle applies what has become due. The error is ErrDown while the machine starts.
func (m *Machine) Settle(ctx context.Context) error {
	if idle, err := m.idle(); idle || err != nil {
		return err
	}
	s, err := m.session()
	if err != nil {
		return err
	}
	defer s.close()
	return s.settle(ctx)
}

// launchdTools are the tools of launchd and of its processes.
func launchdTools() map[string]tool {
	all := map[string]tool{}
	maps.Insert(all, entries("/bin", map[string]func(*proc) int{"launchctl": launchctl, "ps": ps}))
	maps.Insert(all, entries("/sbin", map[string]func(*proc) int{"reboot": reboot, "shutdown": shutdown}))
	maps.Insert(all, entries("/usr/bin", map[string]func(*proc) int{"pgrep": pgrep, "sfltool": sfltool, "uptime": uptime}))
	return all
}
